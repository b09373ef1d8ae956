package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// name is what the page says of a label, an annotation or a taint, besides its meaning: that is the doc comment of its
// constant.
type name struct {
	// on is the kind of objects that have it, by who writes it.
	on, by string
	// users says whether users may set it.
	users bool
}

const (
	user     = "users"
	hub      = "the hub"
	template = "template"
	binding  = "binding"
	inMember = "object in a member"
)

// internalNames are names that no user meets on an object of the hub or of a member.
var internalNames = map[string]string{
	"argosy.io/drained": "a taint of simulated clusters, in memory",
}

// names are the facts of each name of ours whose doc comment does not state them: see factsOf.
var names = map[string]name{
	// What users ask for.
	"argosy.io/rollout-scope":               {template, user, true},
	"argosy.io/rollout-order":               {template, user, true},
	"argosy.io/rollout-clusters":            {template, user, true},
	"argosy.io/rollout-stages":              {template, user, true},
	"argosy.io/rollout-stage":               {template, "users, `argosy rollout approve`", true},
	"argosy.io/unreachable-clusters":        {template, user, true},
	"argosy.io/auto-halt":                   {template, user, true},
	"argosy.io/failed-pods-threshold":       {template, user, true},
	"argosy.io/unique-ordinals":             {"StatefulSet of OpenKruise", user, true},
	"argosy.io/ordinal-mobility":            {"StatefulSet of OpenKruise", user, true},
	"argosy.io/ordinal-scale-down":          {"StatefulSet of OpenKruise", user, true},
	"argosy.io/pre-pull":                    {template, user, true},
	"argosy.io/pre-pull-timeout":            {template, user, true},
	"argosy.io/run-per-cluster":             {"template that runs once", user, true},
	"argosy.io/subset-workload":             {"UnitedDeployment", user, true},
	"argosy.io/namespace-as-selector":       {"SidecarSet", user, true},
	"argosy.io/pause-management":            {template, user, true},
	"argosy.io/override-replicas":           {"OverridePolicy, ClusterOverridePolicy", user, true},
	"argosy.io/failover-persistent-volumes": {"policy", user, true},
	"argosy.io/failback-after":              {"policy", user, true},
	"argosy.io/autoscaling-mode":            {"FederatedHPA", user, true},
	"argosy.io/lenient":                     {"ResourceInterpreterCustomization", user, true},
	"argosy.io/keep-workloads":              {"Cluster", "users, `argosy unjoin --keep-workloads`", true},
	"argosy.io/impersonate-system-names":    {"Cluster", user, true},
	"argosy.io/forbid-overwrite":            {"Namespace", user, true},
	"argosy.io/confirm-deletion":            {"object that is protected", user, true},
	"argosy.io/hands-off":                   {"object in a member, Work", "users of the member, or of the hub", true},
	"argosy.io/accept-restored":             {"Work", "users, `argosy restore accept`", true},
	"argosy.io/approved-steps":              {"Rollout", "users, `argosy rollout approve`", true},
	"argosy.io/installed":                   {"definition of a workload kind", "the hub; users may remove it", true},

	// What the hub records.
	"argosy.io/submitted-fields":       {"template, policy", hub, false},
	"argosy.io/awaiting-change":        {template, hub, false},
	"argosy.io/addon":                  {"object of an addon", "`argosy addons enable`", false},
	"argosy.io/v1alpha2-rest":          {"binding read as v1alpha1", hub, false},
	"argosy.io/template-digest":        {binding, hub, false},
	"argosy.io/template-versions":      {binding, hub, false},
	"argosy.io/sidecars":               {binding, hub, false},
	"argosy.io/preserved-by-pause":     {binding, hub, false},
	"argosy.io/pod-spread":             {binding, hub, false},
	"argosy.io/subset-clusters":        {binding, hub, false},
	"argosy.io/pinned-scale-down":      {binding, hub, false},
	"argosy.io/scaled-by-members":      {binding, hub, false},
	"argosy.io/scaled-by":              {binding, hub, false},
	"argosy.io/failover":               {binding, hub, false},
	"argosy.io/descheduled":            {binding, hub, false},
	"argosy.io/ordinals":               {binding, hub, false},
	"argosy.io/rollout-progress":       {binding, hub, false},
	"argosy.io/rollout-stage-approved": {binding, hub, false},
	"argosy.io/routed-to":              {binding, hub, false},
	"argosy.io/fleet":                  {"Work", hub, false},
	"argosy.io/revisions":              {"Work", hub, false},
	"argosy.io/pre-pull-of":            {"Work", hub, false},
	"argosy.io/endpoint-slice":         {"Work", hub, false},
	"argosy.io/service-of":             {"Work", hub, false},
	"argosy.io/autoscaler-of":          {"Work", hub, false},
	"argosy.io/autoscaling-share":      {"Work", hub, false},
	"argosy.io/preserved-state":        {"Work", hub, false},
	"argosy.io/update-strategy":        {"Work", hub, false},
	"argosy.io/ignored-fields":         {"Work", hub, false},
	"argosy.io/manifest-work":          {"Work, object in a member", hub, false},
	"argosy.io/hub":                    {"object in a member", hub, false},
	"argosy.io/created":                {"namespace or definition in a member", hub, false},
	"argosy.io/sent-entries":           {inMember, hub, false},
	"argosy.io/sent-pods-to-delete":    {"CloneSet in a member", hub, false},
	"argosy.io/template-suspends":      {inMember, hub, false},
	"argosy.io/retained-fields":        {inMember, hub, false},
	"argosy.io/immutable-fields":       {inMember, hub, false},
	"argosy.io/written-digest":         {"role and role binding in a member", hub, false},
	"argosy.io/members-of-groups":      {"role in a member", hub, false},
	"argosy.io/token-of":               {"Secret in a member", hub, false},
	"argosy.io/description":            {"Secret in a member", hub, false},
	"argosy.io/replaces-token-of":      {"Secret of the hub", hub, false},
	"argosy.io/hub-address":            {"Lease in a member", hub, false},
	"argosy.io/hub-run":                {"Lease in a member", hub, false},
	"argosy.io/revision-of":            {"ControllerRevision", hub, false},
	"argosy.io/revision-version":       {"ControllerRevision", hub, false},
	"argosy.io/restore-unseen":         {"ConfigMap of the restore", hub, false},
	"argosy.io/work-names":             {"namespace `karmada-system`", hub, false},
	"argosy.io/spec-generation":        {"object of flow control", hub, false},
	"argosy.io/nudged":                 {"CustomResourceDefinition", hub, false},
}

// facts matches the end of a doc comment that states the facts of a name.
var facts = regexp.MustCompile(`^(.*?) ?On: (.*?)\. (?:Written by: (.*?)\. )?(?:Read by: (.*?)\. )?Users may set it: (.*?)\.?$`)

// factsOf returns the meaning and the facts in a doc comment; stated is false if it states no facts.
func factsOf(doc string) (meaning string, n name, stated bool) {
	m := facts.FindStringSubmatch(doc)
	if m == nil {
		return doc, n, false
	}
	var by []string
	for writer := range strings.SplitSeq(m[3], ", ") {
		switch writer {
		case "users":
		case "cli":
			writer = "`argosy`"
		default: // a package
			writer = hub
		}
		if !slices.Contains(by, writer) {
			by = append(by, writer)
		}
	}
	n = name{on: m[2], by: strings.Join(by, ", "), users: m[5] != "no"}
	if m[5] != "yes" && m[5] != "no" {
		n.by += " (" + m[5] + ")"
	}
	return m[1], n, true
}

// identifier matches the names of constants in a doc comment.
var identifier = regexp.MustCompile(`\b[A-Za-z]+(Annotation|Label|Of|Key)\b`)

func namesPage(s source) (string, error) {
	byName, byValue := map[string]string{}, map[string]constant{}
	for _, c := range s.constants {
		if ownName.MatchString(c.value) {
			byName[c.dir+"."+c.name] = c.value
			if was, known := byValue[c.value]; !known || len(was.doc) < len(c.doc) {
				byValue[c.value] = c
			}
		}
	}
	var wrong []error
	for value, at := range s.literals {
		_, _, stated := factsOf(byValue[value].doc)
		if names[value].on == "" && internalNames[value] == "" && !stated {
			wrong = append(wrong, fmt.Errorf(
				"%s: the doc comment of %s does not end with its facts, and it is not in the table "+
					"of tools/reference/names.go", at, value))
		}
	}
	var settable, recorded []string
	for value := range names {
		if byValue[value].doc == "" {
			wrong = append(wrong, fmt.Errorf("no constant with the value %s has a doc comment: see tools/reference/names.go",
				value))
		}
	}
	for _, value := range slices.Sorted(maps.Keys(byValue)) {
		c := byValue[value]
		text, n, stated := factsOf(c.doc)
		if !stated {
			n = names[value]
		}
		if internalNames[value] != "" || n.on == "" {
			continue
		}
		text = strings.TrimSuffix(strings.TrimSuffix(text, "Ours."), " ")
		text = strings.TrimPrefix(text, c.name+": ")
		if rest, ok := strings.CutPrefix(text, c.name); ok {
			text = "`" + value + "`" + rest
		}
		text = identifier.ReplaceAllStringFunc(text, func(word string) string {
			if is := byName[c.dir+"."+word]; is != "" {
				return "`" + is + "`"
			}
			return word
		})
		row := fmt.Sprintf("| `%s` | %s | %s | %s |\n", value, n.on, n.by, cell(text))
		if n.users {
			settable = append(settable, row)
		} else {
			recorded = append(recorded, row)
		}
	}
	slices.SortFunc(wrong, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	const head = "| name | on | written by | meaning |\n|---|---|---|---|\n"
	return "# Labels and annotations\n```\nkubectl annotate deployment web argosy.io/rollout-order=Ordered\n```\n" +
		"All names of Argosy that are not in Karmada's API. The names of Karmada mean what they mean there. A template is an " +
		"object that a policy propagates. Objects of OpenKruise also have `argosy.io/VERSION-rest`: see " +
		"[versions](../openkruise.md#versions).\n" +
		"\n## Set by users\n" + head + strings.Join(settable, "") +
		"\n## Set by the hub\nDo not write these: the hub depends on them, and writes them again.\n\n" +
		head + strings.Join(recorded, "") + note, errors.Join(wrong...)
}
