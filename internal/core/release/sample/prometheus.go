package sample

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

type Answer struct {
	Code int
	Body []byte
	// Err is the reason why there is no answer.
	Err error
}

// longestText bounds what a message has of an answer's own words.
const longestText = 120

// numbers reads the answer of a Prometheus to an instant query: the numbers of its elements, none if it has no data.
func (a Answer) numbers() ([]float64, error) {
	if a.Err != nil {
		return nil, a.Err
	}
	var body struct {
		Status string `json:"status"`
		Error  string `json:"error"`
		Data   struct {
			Type   string          `json:"resultType"`
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	err := json.Unmarshal(a.Body, &body)
	switch {
	case err == nil && body.Status == "error":
		return nil, errors.New("the query is refused: " + text.Cut(body.Error, longestText))
	case a.Code != http.StatusOK:
		return nil, fmt.Errorf("the server answers %d %s", a.Code, http.StatusText(a.Code))
	case err != nil || body.Status != "success":
		return nil, errors.New("the answer is not one of a Prometheus")
	}
	type point [2]any
	var points []point
	switch body.Data.Type {
	case "scalar":
		points = make([]point, 1)
		err = json.Unmarshal(body.Data.Result, &points[0])
	case "vector":
		var elements []struct {
			Value point `json:"value"`
		}
		err = json.Unmarshal(body.Data.Result, &elements)
		for _, e := range elements {
			points = append(points, e.Value)
		}
	default:
		return nil, fmt.Errorf("the result is a %s: it must be a number or an instant vector",
			text.Cut(body.Data.Type, longestText))
	}
	if err != nil {
		return nil, errors.New("the answer is not one of a Prometheus")
	}
	numbers := make([]float64, len(points))
	for i, p := range points {
		value, ok := p[1].(string)
		if numbers[i], err = strconv.ParseFloat(value, 64); !ok || err != nil {
			return nil, errors.New("the answer has a value that is no number")
		}
	}
	return numbers, nil
}

// OfPrometheus judges the answers to a query and to its control by a condition. control is nil without one. The
// condition must be true for each number.
func OfPrometheus(condition *Condition, query Answer, control *Answer, cluster string) Sample {
	numbers, err := query.numbers()
	if err != nil {
		return Failure(err.Error())
	}
	var against float64
	s := Sample{Outcome: Pass}
	if control != nil {
		all, err := control.numbers()
		switch {
		case err != nil:
			return Failure("control: " + err.Error())
		case len(all) > 1:
			return Failure(fmt.Sprintf("control: the result has %d elements: it must have one", len(all)))
		case len(all) == 0 || math.IsNaN(all[0]):
			return Sample{Outcome: NoData, Message: "the control has no data"}
		}
		against, s.Control = all[0], numberText(all[0])
	}
	if len(numbers) == 0 {
		return Sample{Outcome: NoData, Control: s.Control, Message: "the query has no data"}
	}
	empty := false
	for i, number := range numbers {
		if math.IsNaN(number) {
			empty = true
			continue
		}
		holds, err := condition.holds(number, against, cluster)
		if err != nil {
			return Failure(err.Error())
		}
		if i == 0 || !holds || s.Value == "" {
			s.Value = numberText(number)
		}
		if !holds {
			s.Outcome, s.Message = Fail, "the condition is false: "+condition.text
			return s
		}
	}
	if empty {
		s.Outcome, s.Message = NoData, "the result is not a number"
	}
	return s
}

// TooFew is the sample if a query for a number, such as of requests, answers less than least; nil if it is enough.
func TooFew(query Answer, least int64) *Sample {
	numbers, err := query.numbers()
	if err != nil {
		s := Failure("minSamples: " + err.Error())
		return &s
	}
	var sum float64
	for _, number := range numbers {
		if !math.IsNaN(number) {
			sum += number
		}
	}
	if sum >= float64(least) {
		return nil
	}
	return &Sample{Outcome: NoData, Message: fmt.Sprintf("minSamples: there are %s, and %d are needed", numberText(sum),
		least)}
}

func numberText(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
