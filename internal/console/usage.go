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
	// maxReadings answers of usage and search are made at once, and maxReadingsOfUser of them for one user. Each decodes
	// all ResourceBindings, or holds up to maxSearchBytes, and any user may ask again and again.
	maxReadings, maxReadingsOfUser = 8, 2
)

// countReading counts an answer of usage or search for a user until end is called. The error is an API error.
func (a *API) countReading(u user.Info) (end func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	sum := 0
	for _, n := range a.readings {
		sum += n
	}
	who := u.GetName()
	if sum >= maxReadings || a.readings[who] >= maxReadingsOfUser {
		const busy = "the hub is busy with other pages of usage and search: try again in a minute"
		return nil, apierrors.NewTooManyRequests(busy, 0)
	}
	a.readings[who]++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.readings[who]--; a.readings[who] == 0 {
			delete(a.readings, who)
		}
	}, nil
}

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
	end, err := a.countReading(u)
	if err != nil {
		return nil, err
	}
	defer end()
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
