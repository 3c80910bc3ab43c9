// whereabouts stands for the IPAM plugin of that name: it gives pods the lowest free address of a range, kept in IPPool
// objects. Its faults are kept: range_start and range_end outside the usable addresses are ignored, masks longer than
// /30 and ranges that are wholly excluded fail at ADD, and nothing is checked before ADD.
//
// It does not: reserve addresses across overlapping ranges (two pools with the same addresses collide), clean up after
// dead pods, know node slices, etcd or leader election, nor write a log file.
package main

import (
	"log"
	"os"
	"time"

	"ipu.fabric/standins/internal/host"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
)

const (
	hostConfig = "/etc/cni/net.d/whereabouts.d/" // as the plugin sees it
	podConfig  = "/host" + hostConfig            // as the installer does
)

func main() {
	if host.IsPlugin() {
		skel.PluginMainFuncs(skel.CNIFuncs{Add: add, Del: del, Check: func(*skel.CmdArgs) error { return nil }},
			version.All, "whereabouts stand-in")
		return
	}
	if err := host.InstallSelf("/host/opt/cni/bin/whereabouts"); err != nil {
		log.Fatal(err)
	}
	const settings = `{"datastore":"kubernetes","kubernetes":{"kubeconfig":"` + hostConfig + `whereabouts.kubeconfig"}}`
	host.Keep(10*time.Second, func() error {
		text, err := host.Kubeconfig(os.Getenv("WHEREABOUTS_NAMESPACE"))
		if err != nil {
			return err
		}
		if err := host.Write(podConfig+"whereabouts.kubeconfig", text, 0o600); err != nil {
			return err
		}
		return host.Write(podConfig+"whereabouts.conf", []byte(settings), 0o644)
	}, func() {})
}
