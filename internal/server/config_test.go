package server

import (
	"strings"
	"testing"
)

func TestAListOfNamesSaysWhatIsLeftOutAndWhatIsTaken(t *testing.T) {
	for _, c := range []struct {
		list             []string
		openkruise, argo bool
	}{
		{[]string{"*"}, true, true},
		{[]string{"*", "-argo"}, true, false},
		{[]string{"-argo"}, true, false},
		{[]string{"-argo", "-openkruise"}, false, false},
		{[]string{"argo"}, false, true},
		{[]string{"openkruise", "-argo"}, true, false},
		{[]string{"-*"}, false, false},
		{[]string{"-*", "argo"}, false, true},
		{nil, false, false},
	} {
		config := &Config{WorkloadKinds: c.list}
		if openkruise, argo := config.defines("openkruise"), config.defines("argo"); openkruise != c.openkruise || argo != c.argo {
			t.Errorf("%q: openkruise %v and argo %v, want %v and %v", c.list, openkruise, argo, c.openkruise, c.argo)
		}
	}
}

func TestRequestsIntoMembersAreBoundedSoThatSeveralUsersFit(t *testing.T) {
	c := DefaultConfig()
	if err := c.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	for _, few := range []int{-1, 0, 99} {
		c.Members.ProxyRequests = few
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), "give 100 or more with --member-proxy-requests") {
			t.Errorf("%d: %v", few, err)
		}
	}
}
