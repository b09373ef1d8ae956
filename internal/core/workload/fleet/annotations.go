package fleet

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/argosy-io/argosy/api/wellknown"
)

// HubAnnotations returns the annotations of a template that only the hub reads.
func HubAnnotations() []string {
	return []string{wellknown.RolloutScopeAnnotation, wellknown.RolloutOrderAnnotation,
		wellknown.RolloutClustersAnnotation, wellknown.RolloutStagesAnnotation, wellknown.RolloutStageAnnotation,
		wellknown.UnreachableClustersAnnotation,
		wellknown.AutoHaltAnnotation, wellknown.UniqueOrdinalsAnnotation, wellknown.OrdinalMobilityAnnotation,
		wellknown.OrdinalScaleDownAnnotation, wellknown.FailedPodsThresholdAnnotation,
		wellknown.PrePullAnnotation, wellknown.PrePullTimeoutAnnotation}
}

// Choices are the annotations of templates that have a fixed set of values, with these.
var Choices = map[string][]string{
	wellknown.RolloutScopeAnnotation:        {"Fleet", "Cluster"},
	wellknown.RolloutOrderAnnotation:        {string(inProportion), string(oneByOne), string(inStages)},
	wellknown.UnreachableClustersAnnotation: {"CountAsDown", "Ignore"},
	wellknown.AutoHaltAnnotation:            {"true", "false"},
	wellknown.UniqueOrdinalsAnnotation:      {"true", "false"},
	wellknown.OrdinalMobilityAnnotation:     {"Never", "WithoutPVC", "Always"},
	wellknown.OrdinalScaleDownAnnotation:    {"ClusterHighest", "GlobalHighest"},
}

// CheckAnnotations returns why a template is not sent to members: an invalid annotation. It returns nil if all are
// valid.
func CheckAnnotations(annotations map[string]string) error {
	_, err := optionsOf(annotations)
	return err
}

// order is where new pods come first.
type order string

const (
	inProportion order = "Proportional"
	oneByOne     order = "Ordered"
	inStages     order = "Stages"
)

// stage is one of wellknown.RolloutStagesAnnotation.
type stage struct {
	Percent  *int64   `json:"percent,omitempty"`
	Clusters []string `json:"clusters,omitempty"`
	Pause    bool     `json:"pause,omitempty"`
}

// options are the parsed annotations of a template.
type options struct {
	scope          string // Fleet, Cluster, or empty for the default
	order          order
	clusters       []string
	stages         []stage
	approval       Approval
	approved       int64 // stages whose pauses are approved for the revision of the template
	ignoreLost     bool
	neverHalt      bool
	failedPods     any // nil, a number or a percentage
	uniqueOrdinals bool
	mobility       string
	highestFirst   bool
	plan           *Plan // nil without a release
}

func optionsOf(annotations map[string]string) (options, error) {
	o := options{order: inProportion}
	var err error
	choose := func(key string) string {
		v, set := annotations[key]
		if set && !slices.Contains(Choices[key], v) && err == nil {
			err = fmt.Errorf("annotation %s: %q is not one of %s", key, v, strings.Join(Choices[key], ", "))
		}
		return v
	}
	o.scope = choose(wellknown.RolloutScopeAnnotation)
	if v := choose(wellknown.RolloutOrderAnnotation); v != "" {
		o.order = order(v)
	}
	o.ignoreLost = choose(wellknown.UnreachableClustersAnnotation) == "Ignore"
	o.neverHalt = choose(wellknown.AutoHaltAnnotation) == "false"
	o.uniqueOrdinals = choose(wellknown.UniqueOrdinalsAnnotation) == "true"
	o.mobility = choose(wellknown.OrdinalMobilityAnnotation)
	o.highestFirst = choose(wellknown.OrdinalScaleDownAnnotation) == "GlobalHighest"
	if err != nil {
		return options{}, err
	}
	if v, set := annotations[wellknown.FailedPodsThresholdAnnotation]; set {
		o.failedPods = unquote(v)
		if _, err := Resolve(o.failedPods, 1, Down); err != nil {
			return options{}, fmt.Errorf("annotation %s: %w", wellknown.FailedPodsThresholdAnnotation, err)
		}
	}
	for _, name := range strings.Split(annotations[wellknown.RolloutClustersAnnotation], ",") {
		if name = strings.TrimSpace(name); name != "" {
			o.clusters = append(o.clusters, name)
		}
	}
	if o.order != inStages {
		return o, nil
	}
	decoder := json.NewDecoder(strings.NewReader(annotations[wellknown.RolloutStagesAnnotation]))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o.stages); err != nil {
		return options{}, fmt.Errorf(`annotation %s: not a list of stages such as [{"percent": 10, "pause": true}, {"percent": 100}]: %w`, wellknown.RolloutStagesAnnotation, err)
	}
	if len(o.stages) == 0 {
		return options{}, fmt.Errorf("annotation %s: the list of stages is empty", wellknown.RolloutStagesAnnotation)
	}
	var last int64
	for i, s := range o.stages {
		switch {
		case (s.Percent == nil) == (len(s.Clusters) == 0):
			return options{}, fmt.Errorf("annotation %s: stage %d must have either a percent or clusters",
				wellknown.RolloutStagesAnnotation, i+1)
		case s.Percent != nil && (*s.Percent < last || *s.Percent > 100):
			return options{}, fmt.Errorf("annotation %s: the percent of stage %d must be between %d and 100: it is the total since the start of the rollout", wellknown.RolloutStagesAnnotation, i+1, last)
		case s.Percent != nil:
			last = *s.Percent
		}
	}
	if v, set := annotations[wellknown.RolloutStageAnnotation]; set {
		if o.approval, err = approvalOf(v); err != nil {
			return options{}, fmt.Errorf("annotation %s: %w", wellknown.RolloutStageAnnotation, err)
		}
	}
	return o, nil
}

// leavesToMember reports whether the only member applies the partition and the budgets of the template itself. With
// stages, the hub computes them for one member, too.
func (o options) leavesToMember(members int) bool {
	return members == 0 || members == 1 && o.order != inStages
}

// sorted returns the clusters in the order in which ties are broken and clusters follow each other: as given by the
// template, then as they are.
func (o options) sorted(clusters []string) []string {
	first := slices.DeleteFunc(slices.Clone(o.clusters), func(name string) bool {
		return !slices.Contains(clusters, name)
	})
	return withoutRepeats(append(first, clusters...))
}

// RoutedTo returns the clusters that alone get the template of a binding with these annotations; ok is false where all
// of its clusters do.
func RoutedTo(annotations map[string]string) (clusters []string, ok bool) {
	v, ok := annotations[wellknown.RoutedToAnnotation]
	return split(v), ok
}
