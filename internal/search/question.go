package search

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/rest"

	"github.com/argosy-io/argosy/internal/core/object/text"
)

// Question is what `argosy search` and the page Search of the console ask.
type Question struct {
	// Resource as users write it, such as pods, or ships.v1.example.com for one that only members serve.
	Resource string
	// Namespace is empty for all.
	Namespace string
	// Limit is the maximum number of objects; 0 is all.
	Limit int

	clusters                                        []string
	selector, fields, image, owner, filter, orderBy string
	olderThan, newerThan                            string
	ready, notReady                                 bool
}

// Bind adds the flags of a question, except for the namespace.
func (q *Question) Bind(f *pflag.FlagSet) {
	f.StringSliceVarP(&q.clusters, "clusters", "C", nil, "search only in these clusters")
	f.StringVarP(&q.selector, "selector", "l", "", "only objects with these labels, such as app=web")
	f.StringVar(&q.fields, "field-selector", "", "only objects with these fields, such as spec.nodeName=node-1")
	f.StringVar(&q.image, "image", "", "only objects with this image, with or without registry and tag")
	f.BoolVar(&q.ready, "ready", false, "only objects that are ready")
	f.BoolVar(&q.notReady, "not-ready", false, "only objects that are not ready")
	f.StringVar(&q.owner, "owner", "", "only objects of this controller, as KIND/NAME, such as cloneset/web")
	f.StringVar(&q.olderThan, "older-than", "", "only objects of this age or older, such as 12h or 90d")
	f.StringVar(&q.newerThan, "newer-than", "", "only objects of this age or newer")
	f.StringVar(&q.filter, "filter", "", "only objects for which this CEL expression about `object` and `cluster` is true")
	f.StringVar(&q.orderBy, "order-by", "", "age (the oldest first), cluster, name or namespace; -age reverses it")
	f.IntVar(&q.Limit, "limit", 500, "the maximum number of objects; 0 is all")
}

// ParseQuestion reads what follows `argosy search` on a command line: a resource and flags.
func ParseQuestion(line string) (q Question, err error) {
	all, err := splitWords(line)
	if err != nil {
		return q, err
	}
	f := pflag.NewFlagSet("search", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	q.Bind(f)
	f.StringVarP(&q.Namespace, "namespace", "n", "", "")
	err = f.Parse(all)
	if err == nil && f.NArg() != 1 || errors.Is(err, pflag.ErrHelp) {
		return q, errors.New("name one resource, such as pods, and then filters")
	}
	q.Resource = f.Arg(0)
	return q, err
}

// splitWords splits a command line at its spaces, except for those in quotes. As in a shell, a backslash takes the next
// character as it is, but not in single quotes, and in double quotes only before one of them or a backslash.
func splitWords(line string) (all []string, err error) {
	var word strings.Builder
	quote, begun, escaped := rune(0), false, false
	for _, r := range line + " " {
		switch {
		case escaped:
			if escaped = false; quote != 0 && r != '"' && r != '\\' {
				word.WriteRune('\\')
			}
			word.WriteRune(r)
		case r == '\\' && quote != '\'':
			escaped, begun = true, true
		case r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote, begun = r, true
		case !unicode.IsSpace(r):
			word.WriteRune(r)
			begun = true
		case begun:
			all, begun = append(all, word.String()), false
			word.Reset()
		}
	}
	if quote != 0 {
		return nil, errors.New("a quotation mark is not closed")
	}
	if begun {
		return nil, errors.New("the last character is a backslash: it needs another one after it")
	}
	return all, nil
}

// Request returns the request for the objects, and their resource. The error is about the question.
func (q *Question) Request(hub rest.Interface, mapper meta.RESTMapper) (*rest.Request, schema.GroupVersionResource,
	error) {
	gvr, err := resourceOf(mapper, q.Resource)
	if err != nil {
		return nil, gvr, err
	}
	params, err := q.params(mapper)
	if err != nil {
		return nil, gvr, err
	}
	path := CachePath + "/apis/" + gvr.Group + "/" + gvr.Version
	if gvr.Group == "" {
		path = CachePath + "/api/" + gvr.Version
	}
	if q.Namespace != "" {
		if wrong := validation.IsDNS1123Label(q.Namespace); len(wrong) > 0 {
			return nil, gvr, fmt.Errorf("--namespace %q: %s", q.Namespace, strings.Join(wrong, ", "))
		}
		path += "/namespaces/" + q.Namespace
	}
	request := hub.Get().AbsPath(path + "/" + gvr.Resource)
	for name, values := range params {
		request.Param(name, values[0])
	}
	return request, gvr, nil
}

// resourceOf returns the resource that a user names: as the hub knows it, or in the form RESOURCE.VERSION.GROUP.
func resourceOf(mapper meta.RESTMapper, name string) (schema.GroupVersionResource, error) {
	full, group := schema.ParseResourceArg(name)
	if full != nil {
		if gvr, err := mapper.ResourceFor(*full); err == nil {
			return gvr, nil
		}
	}
	gvr, err := mapper.ResourceFor(group.WithVersion(""))
	if meta.IsNoMatchError(err) {
		// Only members serve it. It becomes a part of a path.
		if full != nil && len(validation.IsDNS1123Label(full.Resource)) == 0 &&
			len(validation.IsDNS1123Label(full.Version)) == 0 && len(validation.IsDNS1123Subdomain(full.Group)) == 0 {
			return *full, nil
		}
		err = fmt.Errorf("the hub does not serve %q: write RESOURCE.VERSION.GROUP for a resource that only members serve, "+
			"such as ships.v1.example.com", name)
	}
	return gvr, err
}

// params returns the parameters of the request.
func (q *Question) params(mapper meta.RESTMapper) (url.Values, error) {
	if q.ready && q.notReady {
		return nil, errors.New("--ready and --not-ready cannot be used together")
	}
	v := url.Values{}
	set := func(name, value string) {
		if value != "" {
			v.Set(name, value)
		}
	}
	set(ParamClusters, strings.Join(q.clusters, ","))
	set("labelSelector", q.selector)
	set("fieldSelector", q.fields)
	set(ParamImage, q.image)
	set(ParamFilter, q.filter)
	set(ParamOrderBy, q.orderBy)
	if q.ready || q.notReady {
		set(ParamReady, strconv.FormatBool(q.ready))
	}
	if q.Limit > 0 {
		set("limit", strconv.Itoa(q.Limit))
	}
	for name, age := range map[string]string{ParamMinAge: q.olderThan, ParamMaxAge: q.newerThan} {
		if age == "" {
			continue
		}
		parsed, err := text.Age(age)
		if err != nil {
			return nil, fmt.Errorf("--older-than and --newer-than: %w", err)
		}
		set(name, parsed.String())
	}
	if q.owner != "" {
		kind, name, ok := strings.Cut(q.owner, "/")
		if !ok || kind == "" || name == "" {
			return nil, fmt.Errorf("--owner %q is not KIND/NAME, such as cloneset/web", q.owner)
		}
		if gvr, err := resourceOf(mapper, kind); err == nil {
			if gvk, err := mapper.KindFor(gvr); err == nil {
				kind = gvk.Kind
			}
		}
		set(ParamOwner, kind+"/"+name)
	}
	return v, nil
}

// More reports whether there may be more objects than the n of an answer with a token for the next page.
func (q *Question) More(n int, next string) bool {
	return next != "" || q.orderBy != "" && n == q.Limit
}
