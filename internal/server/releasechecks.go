package server

import (
	"fmt"
	"net/netip"

	"github.com/spf13/pflag"
)

// ReleaseChecksConfig is what ReleaseChecks may call.
type ReleaseChecksConfig struct {
	// Networks are CIDRs. Empty: all addresses but those of the hub's own machine and of its link.
	Networks []string `json:"networks,omitempty"`
}

func (c *ReleaseChecksConfig) bindFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&c.Networks, "release-check-networks", c.Networks,
		"networks whose addresses ReleaseChecks may call, such as 10.20.0.0/16; empty for all but the loopback, "+
			"link-local and own addresses of the hub's machine")
}

// networks parses the networks.
func (c *ReleaseChecksConfig) networks() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range c.Networks {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("releaseChecks.networks: %q is not a network such as 10.20.0.0/16 or 10.20.3.4/32: %w", text,
				err)
		}
		all = append(all, network.Masked())
	}
	return all, nil
}
