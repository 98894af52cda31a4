package deploy

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// types are the API's own types of what the manifests contain.
var types = map[meta.TypeMeta]func() any{
	{APIVersion: "apps/v1", Kind: "Deployment"}:                 func() any { return new(apps.Deployment) },
	{APIVersion: "v1", Kind: "ConfigMap"}:                       func() any { return new(core.ConfigMap) },
	{APIVersion: "v1", Kind: "PersistentVolumeClaim"}:           func() any { return new(core.PersistentVolumeClaim) },
	{APIVersion: "v1", Kind: "Service"}:                         func() any { return new(core.Service) },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: func() any { return new(networking.NetworkPolicy) },
}

// manifest decodes each document of a file into its type. A field that the type does not have is an
// error, and so is one that is given twice.
func manifest(t *testing.T, path string) (objects []any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := reader.Read()
		if err == io.EOF {
			return objects
		}
		require.NoError(t, err)
		var kind meta.TypeMeta
		require.NoError(t, strict.Unmarshal(document, &kind))
		newObject := types[kind]
		require.NotNil(t, newObject, "%s: %v", path, kind)
		object := newObject()
		require.NoError(t, strict.UnmarshalStrict(document, object, strict.DisallowUnknownFields), "%s: %v", path, kind)
		objects = append(objects, object)
	}
}

func deployments(t *testing.T) (list []*apps.Deployment) {
	files, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 2)
	for _, file := range files {
		for _, object := range manifest(t, file) {
			if d, ok := object.(*apps.Deployment); ok {
				list = append(list, d)
			}
		}
	}
	require.Len(t, list, 2)
	return list
}

// rlserverOf returns the container of rlserver, which is an init container in the sidecar's pod.
func rlserverOf(t *testing.T, pod *core.PodSpec) *core.Container {
	for _, list := range [][]core.Container{pod.InitContainers, pod.Containers} {
		for i := range list {
			if list[i].Name == "rlserver" {
				return &list[i]
			}
		}
	}
	t.Fatal("no container is named rlserver")
	return nil
}

func TestManifestsRestrictWhatRuns(t *testing.T) {
	for _, d := range deployments(t) {
		pod := &d.Spec.Template.Spec
		assert.Equal(t, d.Spec.Selector.MatchLabels, d.Spec.Template.Labels)
		assert.True(t, *pod.SecurityContext.RunAsNonRoot)
		assert.False(t, *pod.EnableServiceLinks, "a Service would set RLSERVER_PORT")
		assert.False(t, *pod.AutomountServiceAccountToken)
		assert.GreaterOrEqual(t, *pod.TerminationGracePeriodSeconds, int64(30))
		for _, c := range append(pod.InitContainers, pod.Containers...) {
			assert.True(t, *c.SecurityContext.ReadOnlyRootFilesystem, c.Name)
			assert.False(t, *c.SecurityContext.AllowPrivilegeEscalation, c.Name)
			assert.Equal(t, []core.Capability{"ALL"}, c.SecurityContext.Capabilities.Drop, c.Name)
			assert.False(t, c.Resources.Requests.Cpu().IsZero(), c.Name)
			assert.False(t, c.Resources.Limits.Memory().IsZero(), c.Name)
		}
		c := rlserverOf(t, pod)
		assert.NotNil(t, c.StartupProbe)
		assert.NotNil(t, c.LivenessProbe)
		for _, mount := range c.VolumeMounts {
			assert.Condition(t, func() bool {
				for _, v := range pod.Volumes {
					if v.Name == mount.Name {
						return true
					}
				}
				return false
			}, mount.Name)
		}
	}
}

// The sidecar and the application share the socket; the Deployment can be reached only through its
// NetworkPolicy, which names ports that the container has.
func TestManifestsFitTogether(t *testing.T) {
	var policy *networking.NetworkPolicy
	var service *core.Service
	var deployment *apps.Deployment
	for _, object := range manifest(t, "kubernetes/deployment.yaml") {
		switch o := object.(type) {
		case *networking.NetworkPolicy:
			policy = o
		case *core.Service:
			service = o
		case *apps.Deployment:
			deployment = o
		}
	}
	labels := deployment.Spec.Template.Labels
	assert.Equal(t, labels, policy.Spec.PodSelector.MatchLabels)
	assert.Equal(t, labels, service.Spec.Selector)
	c := rlserverOf(t, &deployment.Spec.Template.Spec)
	assert.NotNil(t, c.ReadinessProbe)
	ports := make(map[string]bool)
	for _, port := range c.Ports {
		ports[port.Name] = true
	}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			assert.True(t, ports[port.Port.StrVal], port.Port.StrVal)
		}
	}
	for _, port := range service.Spec.Ports {
		assert.True(t, ports[port.TargetPort.StrVal], port.Name)
	}
	for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		assert.True(t, ports[probe.HTTPGet.Port.StrVal])
	}
	assert.Len(t, policy.Spec.PolicyTypes, 2)
	assert.Empty(t, policy.Spec.Egress)

	sidecar := manifest(t, "kubernetes/sidecar.yaml")[0].(*apps.Deployment)
	pod := &sidecar.Spec.Template.Spec
	server := rlserverOf(t, pod)
	assert.Equal(t, core.ContainerRestartPolicyAlways, *server.RestartPolicy)
	assert.Equal(t, env(server)["RLSERVER_UNIXSOCKET"], env(&pod.Containers[0])["RLSERVER_SOCKET"])
	assert.Subset(t, server.VolumeMounts, pod.Containers[0].VolumeMounts)
}

func env(c *core.Container) map[string]string {
	all := make(map[string]string)
	for _, v := range c.Env {
		all[v.Name] = v.Value
	}
	return all
}

// A misspelled field does not pass the tests above.
func TestUnknownFieldsAreErrors(t *testing.T) {
	for _, text := range []string{"spec: {replica: 1}", "spec: {replicas: 1, replicas: 2}"} {
		assert.Error(t, strict.UnmarshalStrict([]byte(text), new(apps.Deployment), strict.DisallowUnknownFields))
	}
}
