package server

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	releasev1alpha1 "github.com/argosy-io/argosy/api/release/v1alpha1"
	"github.com/argosy-io/argosy/internal/history"
	"github.com/argosy-io/argosy/test/kit"
)

func TestHistorySettingsAreValidated(t *testing.T) {
	for name, test := range map[string]struct {
		config HistoryConfig
		want   string
	}{
		"default":             {DefaultConfig().History, ""},
		"off":                 {HistoryConfig{Mode: HistoryOff}, ""},
		"unknown":             {HistoryConfig{Mode: "on"}, "--history"},
		"database":            {HistoryConfig{Mode: HistoryAuto, DSN: "host=db user=argosy"}, ""},
		"database and local":  {HistoryConfig{Mode: HistoryLocal, DSN: "host=db"}, "give either"},
		"password in words":   {HistoryConfig{Mode: HistoryAuto, DSN: "host=db password = x"}, "--history-password-file"},
		"password in the URL": {HistoryConfig{Mode: HistoryAuto, DSN: "postgres://a:b@db/x"}, "--history-password-file"},
		"password as parameter": {HistoryConfig{Mode: HistoryAuto, DSN: "postgres://db/x?password=b"},
			"--history-password-file"},
		"URL":                    {HistoryConfig{Mode: HistoryAuto, DSN: "postgres://a@db/x?passfile=/p"}, ""},
		"passfile in words":      {HistoryConfig{Mode: HistoryAuto, DSN: "host=db passfile=/p"}, ""},
		"password for no server": {HistoryConfig{Mode: HistoryAuto, PasswordFile: "/p"}, "--history-dsn"},
	} {
		err := test.config.validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "a:b") {
			t.Errorf("%s: the message has the password: %v", name, err)
		}
	}
}

// A file of one hub has only the releases of the time when that hub was the leader.
func TestSharedEtcdHasAHistoryFileOnlyInLocalMode(t *testing.T) {
	for name, test := range map[string]struct {
		config HistoryConfig
		shared bool
		want   bool
		note   bool
	}{
		"alone":                {HistoryConfig{Mode: HistoryAuto}, false, true, false},
		"off":                  {HistoryConfig{Mode: HistoryOff}, false, false, false},
		"shared":               {HistoryConfig{Mode: HistoryAuto}, true, false, false},
		"shared, local":        {HistoryConfig{Mode: HistoryLocal}, true, true, true},
		"shared, one database": {HistoryConfig{Mode: HistoryAuto, DSN: "host=db"}, true, true, false},
	} {
		source := test.config.source(t.TempDir(), test.shared)
		if (source != nil) != test.want || source != nil && (source.Note != "") != test.note {
			t.Errorf("%s: the source is %+v", name, source)
		}
	}
}

func TestHistoryShowsNamespacesWithRightToListReleases(t *testing.T) {
	h := useSharedHub(t)
	ctx := t.Context()
	store, _, err := h.history.Store(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"history-mine", "history-theirs"} {
		if err := store.RecordRelease(ctx, &releasev1alpha1.Release{ObjectMeta: metav1.ObjectMeta{Namespace: namespace,
			Name: "web-1", UID: types.UID("u-" + namespace)}}); err != nil {
			t.Fatal(err)
		}
	}
	client := kubernetes.NewForConfigOrDie(h.Config())
	if _, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "history-mine"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().Roles("history-mine").Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{
		Name: "releases"}, Rules: []rbacv1.PolicyRule{{Verbs: []string{"list"}, APIGroups: []string{"release.argosy.io"},
		Resources: []string{"releases"}}}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().RoleBindings("history-mine").Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "hana"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "releases"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "hana"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ask := func(user, path string) (string, error) {
		t.Helper()
		as := rest.CopyConfig(h.adminConfig)
		if user != "" {
			as.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
		}
		raw, err := kubernetes.NewForConfigOrDie(as).RESTClient().Get().RequestURI(path).DoRaw(ctx)
		return string(raw), err
	}
	kit.Eventually(t, "the hub knows what hana may do", func() string {
		review, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: "hana", ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: "history-mine", Verb: "list", Group: "release.argosy.io", Resource: "releases"}}},
			metav1.CreateOptions{})
		if err != nil || !review.Status.Allowed {
			return "not yet"
		}
		return ""
	})
	for _, path := range history.Paths {
		if path == history.EventsPath {
			continue // it needs a release
		}
		for namespace, may := range map[string]bool{"?namespace=history-mine": true, "?namespace=history-theirs": false,
			"?namespace=history-mine&namespace=history-theirs": false, "": false} {
			raw, err := ask("hana", path+namespace)
			if may != (err == nil) || !may && !apierrors.IsForbidden(err) {
				t.Errorf("%s%s answers hana %s, %v; she may: %t", path, namespace, raw, err, may)
			}
		}
		if _, err := ask("", path); err != nil {
			t.Errorf("%s refuses an administrator: %v", path, err)
		}
	}
	if _, err := ask("nobody", history.ReleasesPath+"?namespace=history-mine"); !apierrors.IsForbidden(err) {
		t.Errorf("a user without rights gets %v", err)
	}
	if raw, err := ask("hana", history.EventsPath+"?namespace=history-mine&uid=u-9"); !apierrors.IsNotFound(err) {
		t.Errorf("events of no release: %s, %v", raw, err)
	}
}
