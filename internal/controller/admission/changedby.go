package admission

import (
	"context"
	"strings"

	"github.com/argosy-io/argosy/api/wellknown"
	"github.com/argosy-io/argosy/internal/core/object/fields"
	"github.com/argosy-io/argosy/internal/core/object/text"
)

// longestUser bounds the bytes of a user's name in an annotation. The API server does not bound names.
const longestUser = 256

// naming adds to a mutation that the object names the user who changed its spec last. The name is stored with the
// change in the same write, so a refused write or a dry run leaves none. Other writes keep the stored name, whatever
// the client sends.
func naming(mutate func(context.Context, request) error) func(context.Context, request) error {
	return func(ctx context.Context, r request) error {
		kept := r.keepsSpec() // defaults of a later version are no change of the user
		if err := mutate(ctx, r); err != nil {
			return err
		}
		by := text.Cut(strings.ToValidUTF8(r.GetUserInfo().GetName(), "\uFFFD"), longestUser)
		if kept || r.keepsSpec() {
			by = r.old.GetAnnotations()[wellknown.ChangedByAnnotation]
		}
		fields.PutAnnotation(r.obj, wellknown.ChangedByAnnotation, by)
		return nil
	}
}
