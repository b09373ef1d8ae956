package console

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"

	coreusage "github.com/argosy-io/argosy/internal/core/explain/usage"
	"github.com/argosy-io/argosy/internal/core/hub/roles"
	"github.com/argosy-io/argosy/internal/usage"
)

const (
	usagePath = apiPrefix + "usage"
	// maxUsages are read at once. Each decodes all ResourceBindings, and any user may ask again and again.
	maxUsages = 4
)

// usageAnswer is the answer at usagePath: what `argosy usage` prints.
type usageAnswer struct {
	// Columns and Lines are the table of the command, CSV its output with -o csv, and Command the command.
	Columns []string   `json:"columns"`
	Lines   [][]string `json:"lines"`
	CSV     string     `json:"csv"`
	Command string     `json:"command"`
	// Notes are why a part is unknown, and Warnings name the clusters that are left out. Missing has rights that the user
	// lacks for a part.
	Notes    []string        `json:"notes,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
	Missing  []roles.Missing `json:"missing,omitempty"`
}

// usage sums what workloads request and use, as the user: namespace, and by, since and price as the flags of the
// command.
func (a *API) usage(r *http.Request, u user.Info) (any, error) {
	v := r.URL.Query()
	prices := map[string]string{}
	if price := v.Get("price"); price != "" {
		for part := range strings.SplitSeq(price, ",") {
			name, value, _ := strings.Cut(part, "=")
			prices[name] = value
		}
	}
	q, err := usage.ParseQuery(cmp.Or(v.Get("by"), coreusage.Namespace), cmp.Or(v.Get("since"), usage.SinceDefault),
		prices, time.Now())
	if err != nil {
		return nil, badRequest("%v", err)
	}
	if q.Namespace = v.Get("namespace"); !validNamespace(q.Namespace) {
		return nil, badRequest("give no more than one namespace")
	}
	c, _, err := a.clientFor(u)
	if err != nil {
		return nil, err
	}
	select {
	case a.usages <- struct{}{}:
		defer func() { <-a.usages }()
	default:
		return nil, apierrors.NewTooManyRequests("the hub is busy with other pages of usage: try again in a minute", 0)
	}
	seen := &apiWarnings{}
	report, err := usage.Read(context.WithValue(r.Context(), apiWarningsKey{}, seen), c, a.configOf(u), q)
	if err != nil {
		return nil, err
	}
	answer := usageAnswer{CSV: report.CSV(), Command: "argosy usage -A", Notes: report.Notes, Warnings: seen.texts,
		Missing: report.Missing}
	answer.Columns, answer.Lines = report.Lines()
	if q.Namespace != "" {
		answer.Command = "argosy usage -n " + q.Namespace
	}
	// The values are valid: a shell takes each for one word.
	for _, flag := range []string{"by", "since", "price"} {
		if value := v.Get(flag); value != "" {
			answer.Command += " --" + flag + " " + value
		}
	}
	return answer, nil
}
