package why

import (
	"fmt"
	"strings"
)

// saidThere is what a member answered, or why it did not, in the message of the condition Applied of a Work: without the hub's words
// before that, which name the object, the cluster and the request. What the member repeats of others, such as of a webhook, stands further
// back, so that nothing is to be concluded from a word that is anywhere in it.
func saidThere(cluster, message string) string {
	if strings.HasPrefix(message, "Failed to apply all manifests (") {
		_, message, _ = strings.Cut(message, "): ")
	}
	if _, after, ok := strings.Cut(message, fmt.Sprintf("cluster %q", cluster)); ok {
		after = strings.TrimPrefix(after, " serves")
		if said, ok := strings.CutPrefix(after, ": "); ok {
			message = said
		}
	}
	for _, verb := range []string{"Get", "Post", "Put", "Patch", "Delete", "Head"} { // as a client of Go says it
		if request, ok := strings.CutPrefix(message, verb+` "`); ok {
			if _, after, ok := strings.Cut(request, `": `); ok {
				return after
			}
		}
	}
	return message
}

// unauthorized says whether a member does not know who the hub is.
func unauthorized(said string) bool {
	return strings.HasPrefix(said, "Unauthorized") || strings.HasPrefix(said, "the server has asked for the client to provide credentials")
}

// unpermitted says whether a member does not let the hub's account do something. What admission forbids names no user.
func unpermitted(said string) bool {
	object, why, ok := strings.Cut(said, " is forbidden: ")
	return ok && !strings.Contains(object, ": ") && strings.HasPrefix(why, "User ")
}

// ownRefusal says whether the hub itself refuses to touch an object that is there and not its own.
func ownRefusal(said string) bool { return strings.HasPrefix(said, "resource(kind=") }
