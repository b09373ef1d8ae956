package hubcli

import (
	"os"
	"regexp"
	"testing"
)

func TestTheTablesOfForeignFlagsAreComplete(t *testing.T) {
	for page, flags := range map[string][]foreign{"scheduler.md": SchedulerFlags, "pull.md": AgentFlags} {
		text, err := os.ReadFile("../../../docs/" + page)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range flags {
			for _, name := range f.names {
				if !regexp.MustCompile("`--" + name + "`").Match(text) {
					t.Errorf("docs/%s does not say that --%s is ignored", page, name)
				}
			}
		}
	}
}
