package sim

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/argosy-io/argosy/api/kruise"
)

// Member is one member cluster to simulate. Only the name is needed.
type Member struct {
	// Name tells the members of a fleet apart; it is the context in the fleet's kubeconfig.
	Name string
	// Nodes is how many fake nodes the member has; 3 if zero.
	Nodes int
	// NodeCPU, NodeMemory and NodePods are what each node has: 32, 128Gi and 250 if empty.
	NodeCPU, NodeMemory, NodePods string
	// Region, Zone and Provider are where the nodes say that they are.
	Region, Zone, Provider string
	// Zones take turns over the nodes, instead of Zone; none if empty.
	Zones []string
	// OpenKruise is the release that the member behaves as, which decides on the versions that it serves: 1.8 if empty,
	// with v1alpha1 alone for most kinds, 1.9, or 1.10, with both. A folder of an earlier run must be of the same release.
	OpenKruise string
	// StoredVersionsOnly has the member serve each kind of OpenKruise in the version alone in which it is stored: v1alpha1
	// for most kinds of 1.8, v1beta1 for those of 1.10.
	StoredVersionsOnly bool
	// Bare has the member neither define nor simulate the kinds of OpenKruise and Argo Workflows, so that the real
	// programs can be installed.
	Bare bool
}

// Config of a member's process. It is a file in the member's folder.
type Config struct {
	Member
	// Port is the API server's, on 127.0.0.1.
	Port int
}

func (m Member) withDefaults() Member {
	m.Nodes = cmp.Or(m.Nodes, 3)
	m.NodeCPU, m.NodeMemory, m.NodePods = cmp.Or(m.NodeCPU, "32"), cmp.Or(m.NodeMemory, "128Gi"), cmp.Or(m.NodePods, "250")
	m.OpenKruise = cmp.Or(m.OpenKruise, kruise.Release1_8)
	return m
}

// Files of a member, below its folder.
func configFile(dir string) string { return filepath.Join(dir, "member.json") }
func logFile(dir string) string    { return filepath.Join(dir, "member.log") }

// KubeconfigFile is where a member's process writes how to reach it, before it reports to be ready.
func KubeconfigFile(dir string) string { return filepath.Join(dir, "kubeconfig") }

// ReadConfig returns the configuration of the member in dir.
func ReadConfig(dir string) (Config, error) {
	data, err := os.ReadFile(configFile(dir))
	if err != nil {
		return Config{}, fmt.Errorf("read the member's configuration: %w", err)
	}
	var c Config
	if err := json.Unmarshal(data, &c); err != nil {
		return Config{}, fmt.Errorf("read the member's configuration: %w", err)
	}
	return c, nil
}

func writeConfig(dir string, c Config) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(configFile(dir), data, 0o600)
}

// The child's ends of two pipes. On the report it writes one line: what is wrong, or reportReady. The lifeline it only
// reads: at its end the parent is gone.
const (
	ReportFD    = 3
	LifelineFD  = 4
	ReportReady = "ready"
	// ChildVerb is the hidden command of the binary that serves one member.
	ChildVerb = "sim-member"
)
