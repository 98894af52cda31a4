package wire

import (
	"crypto/tls"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"rlserver/resp/config"
)

// A client that does not complete the handshake is closed after ten seconds, or at preauth-timeout
// if that is shorter, however it sends its bytes.
func TestStalledHandshakesTimeOut(t *testing.T) {
	for name, test := range map[string]struct {
		login, want time.Duration
		send        []byte // one byte per second, then nothing
	}{
		"nothing":               {0, HandshakeTime, nil},
		"a byte per second":     {0, HandshakeTime, append([]byte{0x16, 0x03, 0x01, 0x02, 0x00}, make([]byte, 99)...)},
		"late preauth-timeout":  {time.Minute, HandshakeTime, nil},
		"early preauth-timeout": {3 * time.Second, 3 * time.Second, []byte{0x16, 0x03}},
	} {
		synctest.Test(t, func(t *testing.T) {
			client, server := net.Pipe()
			defer client.Close()
			start := time.Now()
			g := NewTLSGuard(server, &tls.Config{}, config.NewConnectionLimits(), nil)
			g.LoginTime = func() time.Duration { return test.login }
			g.SetAuthenticated(false)
			var sending sync.WaitGroup
			sending.Go(func() {
				for _, b := range test.send {
					time.Sleep(time.Second)
					if _, err := client.Write([]byte{b}); err != nil {
						return
					}
				}
			})
			time.AfterFunc(time.Second, g.Retime) // as CONFIG SET timeout calls it
			err := g.Wait(make([]byte, 4096))
			require.ErrorContains(t, err, "TLS handshake: not complete in time", name)
			_, isHandshake := err.(*HandshakeError)
			require.True(t, isHandshake, name)
			require.Equal(t, test.want, time.Since(start), name)
			g.Close()
			sending.Wait()
		})
	}
}

// A drain ends a handshake at once.
func TestDrainEndsAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		defer client.Close()
		g := NewTLSGuard(server, &tls.Config{}, config.NewConnectionLimits(), nil)
		time.AfterFunc(time.Second, g.Drain)
		start := time.Now()
		err := g.Wait(make([]byte, 4096))
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(start))
		g.Close()
	})
}
