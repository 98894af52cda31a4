package deploy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policies "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

// types are the API types of the objects in the manifests.
var types = map[meta.TypeMeta]func() any{
	{APIVersion: "apps/v1", Kind: "Deployment"}:  func() any { return new(apps.Deployment) },
	{APIVersion: "apps/v1", Kind: "StatefulSet"}: func() any { return new(apps.StatefulSet) },
	{APIVersion: "policy/v1", Kind: "PodDisruptionBudget"}: func() any {
		return new(policies.PodDisruptionBudget)
	},
	{APIVersion: "v1", Kind: "ConfigMap"}:                       func() any { return new(core.ConfigMap) },
	{APIVersion: "v1", Kind: "PersistentVolumeClaim"}:           func() any { return new(core.PersistentVolumeClaim) },
	{APIVersion: "v1", Kind: "Service"}:                         func() any { return new(core.Service) },
	{APIVersion: "networking.k8s.io/v1", Kind: "NetworkPolicy"}: func() any { return new(networking.NetworkPolicy) },
}

// manifest decodes each document of a file into its type. An unknown or duplicate field is an
// error.
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

// workload is the common part of a Deployment and a StatefulSet.
type workload struct {
	selector *meta.LabelSelector
	template *core.PodTemplateSpec
	claims   []string // volumes that are created for each pod
}

func workloads(t *testing.T) (list []workload) {
	files, err := filepath.Glob("kubernetes/*.yaml")
	require.NoError(t, err)
	require.Len(t, files, 3)
	for _, file := range files {
		for _, object := range manifest(t, file) {
			switch o := object.(type) {
			case *apps.Deployment:
				list = append(list, workload{o.Spec.Selector, &o.Spec.Template, nil})
			case *apps.StatefulSet:
				w := workload{o.Spec.Selector, &o.Spec.Template, nil}
				for i := range o.Spec.VolumeClaimTemplates {
					w.claims = append(w.claims, o.Spec.VolumeClaimTemplates[i].Name)
				}
				list = append(list, w)
			}
		}
	}
	require.Len(t, list, 3)
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

func TestManifestsRestrictContainers(t *testing.T) {
	for _, w := range workloads(t) {
		pod := &w.template.Spec
		assert.Equal(t, w.selector.MatchLabels, w.template.Labels)
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
		volumes := w.claims
		for i := range pod.Volumes {
			volumes = append(volumes, pod.Volumes[i].Name)
		}
		for _, mount := range c.VolumeMounts {
			assert.Contains(t, volumes, mount.Name)
		}
	}
}

// The sidecar and the application share the socket. The NetworkPolicy and the Service of the
// Deployment select its pods, and name ports that the container has.
func TestManifestsAreConsistent(t *testing.T) {
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
	fits(t, &deployment.Spec.Template, policy, service)
	assert.Empty(t, policy.Spec.Egress)

	sidecar := manifest(t, "kubernetes/sidecar.yaml")[0].(*apps.Deployment)
	pod := &sidecar.Spec.Template.Spec
	server := rlserverOf(t, pod)
	assert.Equal(t, core.ContainerRestartPolicyAlways, *server.RestartPolicy)
	assert.Equal(t, env(server)["RLSERVER_UNIXSOCKET"], env(&pod.Containers[0])["RLSERVER_SOCKET"])
	assert.Subset(t, server.VolumeMounts, pod.Containers[0].VolumeMounts)
}

// fits checks that a policy and services select the pods, and that the container has the ports that
// they and the probes name.
func fits(
	t *testing.T, template *core.PodTemplateSpec, policy *networking.NetworkPolicy, services ...*core.Service,
) {
	t.Helper()
	assert.Equal(t, template.Labels, policy.Spec.PodSelector.MatchLabels)
	assert.Len(t, policy.Spec.PolicyTypes, 2)
	c := rlserverOf(t, &template.Spec)
	ports := make(map[string]bool)
	for _, port := range c.Ports {
		ports[port.Name] = true
	}
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			assert.True(t, ports[port.Port.StrVal], port.Port.StrVal)
		}
	}
	for _, service := range services {
		assert.Equal(t, template.Labels, service.Spec.Selector)
		for _, port := range service.Spec.Ports {
			assert.True(t, ports[port.TargetPort.StrVal], port.Name)
		}
	}
	for _, probe := range []*core.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if assert.NotNil(t, probe) {
			assert.True(t, ports[probe.HTTPGet.Port.StrVal])
		}
	}
}

// The nodes can find each other before they are ready, at most one pod is evicted at a time, and
// the configuration matches the other objects.
func TestClusterManifestIsConsistent(t *testing.T) {
	var policy *networking.NetworkPolicy
	var config *core.ConfigMap
	var set *apps.StatefulSet
	var budget *policies.PodDisruptionBudget
	services := make(map[string]*core.Service)
	for _, object := range manifest(t, "kubernetes/cluster.yaml") {
		switch o := object.(type) {
		case *networking.NetworkPolicy:
			policy = o
		case *core.ConfigMap:
			config = o
		case *core.Service:
			services[o.Name] = o
		case *apps.StatefulSet:
			set = o
		case *policies.PodDisruptionBudget:
			budget = o
		}
	}
	template := &set.Spec.Template
	own, nodes := services[set.Name], services[set.Spec.ServiceName]
	fits(t, template, policy, own, nodes)
	assert.Equal(t, core.ClusterIPNone, nodes.Spec.ClusterIP)
	assert.True(t, nodes.Spec.PublishNotReadyAddresses)
	assert.False(t, own.Spec.PublishNotReadyAddresses)
	assert.Equal(t, apps.ParallelPodManagement, set.Spec.PodManagementPolicy)
	assert.Equal(t, template.Labels, budget.Spec.Selector.MatchLabels)
	assert.Equal(t, 1, budget.Spec.MaxUnavailable.IntValue())
	apart := template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
	assert.Equal(t, template.Labels, apart.LabelSelector.MatchLabels)

	var join []string
	for i := range int(*set.Spec.Replicas) {
		join = append(join, fmt.Sprintf("%s-%d.%s", set.Name, i, nodes.Name))
	}
	text := "\n" + config.Data["rlserver.conf"]
	assert.Contains(t, text, "join "+strings.Join(join, ",")+"\n")
	assert.Contains(t, text, fmt.Sprintf("bootstrap-expect %d\n", *set.Spec.Replicas))
	for _, port := range rlserverOf(t, &template.Spec).Ports {
		setting := map[string]string{
			"resp": "port", "proxy": "proxy-port", "nodes": "cluster-port", "http": "http-port",
		}[port.Name]
		assert.Contains(t, text, fmt.Sprintf("\n%s %d\n", setting, port.ContainerPort))
	}
	assert.Equal(t, policy.Spec.Ingress[1], networking.NetworkPolicyIngressRule{
		From: policy.Spec.Egress[0].To, Ports: policy.Spec.Egress[0].Ports,
	}, "nodes may connect to each other")
}

func env(c *core.Container) map[string]string {
	all := make(map[string]string)
	for _, v := range c.Env {
		all[v.Name] = v.Value
	}
	return all
}

// A misspelled field fails the tests above.
func TestUnknownManifestFieldsAreErrors(t *testing.T) {
	for _, text := range []string{"spec: {replica: 1}", "spec: {replicas: 1, replicas: 2}"} {
		assert.Error(t, strict.UnmarshalStrict([]byte(text), new(apps.Deployment), strict.DisallowUnknownFields))
	}
}
