package interpret

import "testing"

// A stage of a release changes the partition of a CloneSet, and its controller takes a second to observe that. The pods
// that were updated before it still are; those of another template are not.
func TestUpdatedPodsCountUntilTheControllerObservesAChange(t *testing.T) {
	status := func(generation, seen, of int64, former string) map[string]any {
		s := map[string]any{GenerationField: generation, "observedGeneration": seen, TemplateGenerationField: of}
		if former != "" {
			s[FormerRevisionField] = former
		}
		return s
	}
	for name, c := range map[string]struct {
		reports []map[string]any
		want    bool // of the last report, for generation 2 of the template
	}{
		"observed":          {[]map[string]any{status(5, 5, 2, "")}, true},
		"observed, older":   {[]map[string]any{status(5, 5, 1, "")}, false},
		"the first report":  {[]map[string]any{status(5, 4, 2, "")}, false},
		"another partition": {[]map[string]any{status(5, 5, 2, ""), status(6, 5, 2, "")}, true},
		"two partitions": {
			[]map[string]any{status(5, 5, 2, ""), status(6, 5, 2, ""), status(7, 5, 2, "")}, true},
		"another template": {[]map[string]any{status(5, 5, 1, ""), status(6, 5, 2, "")}, false},
		"a template, then a partition": {
			[]map[string]any{status(5, 5, 1, ""), status(6, 5, 2, ""), status(7, 5, 2, "")}, false},
		"a template, observed, then a partition": {
			[]map[string]any{status(5, 5, 1, ""), status(6, 6, 2, ""), status(7, 6, 2, "")}, true},
		"a release begins":  {[]map[string]any{status(5, 5, 2, "r1"), status(6, 5, 2, "")}, false},
		"a rollback begins": {[]map[string]any{status(5, 5, 2, ""), status(6, 5, 2, "r1")}, false},
		"no generation of the template": {
			[]map[string]any{{}, {GenerationField: int64(6), "observedGeneration": int64(5)}}, false},
	} {
		var last map[string]any
		for _, report := range c.reports {
			KeepCounted(report, last)
			last = report
		}
		if got := CountsUpdated(last, 2); got != c.want {
			t.Errorf("%s: %v, want %v; the report is %v", name, got, c.want, last)
		}
	}
}
