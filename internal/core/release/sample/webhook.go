package sample

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// The shortest and longest time that a webhook can ask to wait.
const (
	shortestWait = time.Second
	longestWait  = time.Hour
)

// verdicts are the outcomes that a webhook can name.
var verdicts = map[string]Outcome{"Pass": Pass, "Fail": Fail, "Inconclusive": NoData, "Wait": Wait}

// OfWebhook judges the answer of a webhook.
func OfWebhook(a Answer) Sample {
	switch {
	case a.Err != nil:
		return Failure(a.Err.Error())
	case a.Code >= 400 && a.Code < 500:
		return Sample{Outcome: Fail, Message: fmt.Sprintf("the webhook answers %d %s", a.Code, http.StatusText(a.Code))}
	case a.Code < 200 || a.Code >= 300:
		return Failure(fmt.Sprintf("the webhook answers %d %s", a.Code, http.StatusText(a.Code)))
	}
	var body struct {
		Verdict    string `json:"verdict"`
		Message    string `json:"message"`
		RetryAfter string `json:"retryAfter"`
	}
	if json.Unmarshal(a.Body, &body) != nil || body.Verdict == "" {
		return Sample{Outcome: Pass}
	}
	outcome, known := verdicts[body.Verdict]
	if !known {
		return Failure(fmt.Sprintf("the webhook answers the verdict %q, which is none of Pass, Fail, Inconclusive and Wait",
			text.Cut(body.Verdict, longestText)))
	}
	s := Sample{Outcome: outcome, Message: text.Cut(body.Message, longestText)}
	if after, err := time.ParseDuration(body.RetryAfter); err == nil {
		s.After = min(max(after, shortestWait), longestWait)
	}
	return s
}
