package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

func TestClusterSettingsAreShownAsTheyApply(t *testing.T) {
	shown := func(flags string) (list []string) {
		c, _, err := parse(strings.Fields("--cluster --join a,b,c "+flags), new(bytes.Buffer))
		require.NoError(t, err)
		for _, name := range []string{
			"cluster-port", "failover-hold", "cluster-announce-port", "cluster-announce-tls-port", "proxy-port",
			"cluster-groups", "databases",
		} {
			list = append(list, config.Lookup(name).Shown(c.Settings))
		}
		c.ClusterGroups = func() int { return 6 }
		return append(list, config.Lookup("cluster-groups").Shown(c.Settings))
	}
	assert.Equal(t, []string{"16379", "2000", "6379", "0", "0", "0", "1", "6"}, shown(""))
	assert.Equal(t, []string{"17000", "500", "0", "1", "8", "6", "1", "6"},
		shown("--port 0 --tls-port 7000 --failover-hold 500 --cluster-announce-port 9 --cluster-announce-tls-port 1 "+
			"--proxy-port 8 --cluster-groups 6"))
}

func TestClusterSettingsThatAreRefused(t *testing.T) {
	for _, test := range []struct{ flags, want string }{
		{"", "--cluster needs --join"},
		{"--join a,b,c --appendonly no", "--cluster needs --appendonly yes"},
		{"--join a,b,c --databases 2", "--cluster supports only database 0"},
		{"--join a,b,c --port 0 --unixsocket s", "--cluster needs --port or --tls-port"},
		{"--join a,b,c --port 60000", "the port for the other nodes would be 70000"},
		{"--join a,b,c --proxy-port 16379", "--proxy-port 16379 is the port for the other nodes"},
		{"--join a,b,c --cluster-port 7000 --proxy-port 7000", "--proxy-port 7000 is the port for the other nodes"},
		{"--join a,b,c --proxy-port 6379", "--proxy-port 6379 is another port of this server"},
		{"--join a,b,c --cluster-enabled no --proxy-port 7000", "--proxy-port needs --cluster"},
		{"--join a,b,c --proxy-port 7000 --proxy-max-links 0", "--proxy-max-links"},
		{"--join a,b,c --save=3600_1", "--cluster does not have --save"},
	} {
		argv := strings.Fields("--cluster " + test.flags)
		for i := range argv {
			argv[i] = strings.ReplaceAll(argv[i], "_", " ")
		}
		_, _, err := parse(argv, new(bytes.Buffer))
		assert.ErrorContains(t, err, test.want, test.flags)
	}
}
