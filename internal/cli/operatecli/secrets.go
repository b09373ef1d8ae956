package operatecli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/argosy-io/argosy/internal/cli/hubcli"
	"github.com/argosy-io/argosy/internal/server"
)

func NewSecrets(hub *hubcli.HubFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Show how the hub encrypts secrets at rest, and rotate the key",
		Long: `The hub encrypts at rest Secrets and the objects that carry them to members. The keys are in the store, encrypted with the master key in
the pki folder, encryption.key. Without that file, no encrypted data can be read.`,
	}
	cmd.AddCommand(newSecretsStatus(hub), newSecretsRotateKey(hub), newSecretsRewrite(hub))
	return cmd
}

func newSecretsStatus(hub *hubcli.HubFlags) *cobra.Command {
	output := ""
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show which keys encrypt secrets at rest, and what is not encrypted yet",
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := hub.Kubernetes()
			if err != nil {
				return err
			}
			s, err := encryptionOf(cmd.Context(), client)
			if err != nil {
				return err
			}
			if output != "" {
				return hubcli.WriteAs(cmd.OutOrStdout(), output, s)
			}
			printEncryption(cmd.OutOrStdout(), s)
			return nil
		},
	}
	hubcli.OutputFlag(cmd, &output, "output format: json or yaml")
	return cmd
}

func newSecretsRotateKey(hub *hubcli.HubFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "rotate-key",
		Short: "Re-encrypt secrets with a new key, and delete the old one",
		Long: `Creates a new key, waits until all hubs on the store have read it, re-encrypts everything that is secret, and deletes the old key. If this
command or the hub is interrupted, the rotation continues automatically.

The new key is encrypted with the first line of encryption.key in the pki folder. To replace that master key, first add a line before it.`,
		Args: hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return changeEncryption(cmd, hub, "") },
	}
}

func newSecretsRewrite(hub *hubcli.HubFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "rewrite",
		Short: "Rewrite stored values that do not use the current encryption",
		Long:  `Re-encrypts everything on a hub with --encryption-provider-config. Run it after you add a new key or provider as the first one there.`,
		Args:  hubcli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return changeEncryption(cmd, hub, "rewrite")
		},
	}
}

func encryptionOf(ctx context.Context, client *kubernetes.Clientset) (s server.EncryptionStatus, err error) {
	data, err := client.RESTClient().Get().AbsPath(server.EncryptionPath).DoRaw(ctx)
	err = refusal(data, err)
	switch {
	case apierrors.IsNotFound(err):
		return s, errors.New("this hub does not report how it encrypts secrets: it is older than this command, or not an Argosy hub")
	case err != nil:
		return s, fmt.Errorf("ask the hub how it encrypts secrets: %w", err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("ask the hub how it encrypts secrets: %w", err)
	}
	return s, nil
}

// refusal returns err with the message of the API server, which client-go does not parse for raw requests.
func refusal(answer []byte, err error) error {
	var status metav1.Status
	if apierrors.IsForbidden(err) && json.Unmarshal(answer, &status) == nil && status.Message != "" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	return err
}

// changeEncryption starts a change and returns when it is done.
func changeEncryption(cmd *cobra.Command, hub *hubcli.HubFlags, what string) error {
	ctx, out := cmd.Context(), cmd.OutOrStdout()
	client, err := hub.Kubernetes()
	if err != nil {
		return err
	}
	before, err := encryptionOf(ctx, client)
	if err != nil {
		return err
	}
	request := client.RESTClient().Post().AbsPath(server.EncryptionPath)
	if what != "" {
		request = request.Param(what, "")
	}
	if answer, err := request.DoRaw(ctx); err != nil {
		if text := strings.TrimSpace(string(answer)); text != "" &&
			(apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err)) {
			return errors.New(text)
		}
		return fmt.Errorf("ask the hub: %w", refusal(answer, err))
	}
	shown, begin := "", time.Now()
	for tick := time.NewTicker(300 * time.Millisecond); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New("stopped waiting: the rotation continues, and `argosy secrets status` shows its progress")
		}
		s, err := encryptionOf(ctx, client)
		if err != nil {
			return err
		}
		step := s.Step
		if s.Behind > 0 && time.Since(begin) > quietWait { // hubs need a moment to read the store
			step = fmt.Sprintf("waiting for %d of the hubs on this store to read the new key", s.Behind)
		}
		if step != "" && step != shown {
			shown = step
			fmt.Fprintf(out, "%s …\n", step)
		}
		switch {
		case s.Failed != "":
			return fmt.Errorf("%s; the hub retries every minute", s.Failed)
		case !s.Rotating && !s.Rewriting:
			tick.Stop()
			if what != "rewrite" && (len(before.Keys) == 0 || len(s.Keys) == 0 || s.Keys[0].Name == before.Keys[0].Name) {
				return errors.New("the hub stopped the rotation and still uses the old key: check its log")
			}
			printEncryption(out, s)
			return nil
		}
	}
}

// quietWait is how long hubs on one store may take to load keys before the user is informed about the wait.
const quietWait = 3 * time.Second

func printEncryption(out io.Writer, s server.EncryptionStatus) {
	switch s.By {
	case "providers":
		fmt.Fprintln(out, "Encrypted by the providers of --encryption-provider-config.")
	case "nothing":
		fmt.Fprintln(out, "Not encrypted: the hub runs with --encrypt-secrets=false.")
	default:
		fmt.Fprintln(out, "Encrypted by the hub (AES-GCM).")
	}
	for _, k := range s.Keys {
		use := "reads"
		if k.Writes && s.By == "hub" {
			use = "writes and reads"
		}
		fmt.Fprintf(out, "  %s  %s, created %s\n", k.Name, use, k.Created.Format(time.RFC3339))
	}
	fmt.Fprintf(out, "%d values of %s", s.Values, strings.Join(s.Resources, ", "))
	switch {
	case s.Stale > 0:
		fmt.Fprintf(out, "; %d still to be rewritten", s.Stale)
	default:
		fmt.Fprint(out, ", all up to date")
	}
	fmt.Fprintln(out)
	if s.Unreadable > 0 {
		fmt.Fprintf(out, "%d cannot be decrypted with any key: restore the store and the pki folder from the same backup\n",
			s.Unreadable)
	}
	if s.Step != "" {
		fmt.Fprintf(out, "Now: %s\n", s.Step)
	}
	if s.Rotating && s.Behind > 0 {
		fmt.Fprintf(out, "%d of the hubs on this store have not read the new key yet: its master key must be in the encryption.key of each\n", s.Behind)
	}
	if s.Failed != "" {
		fmt.Fprintf(out, "The last change failed: %s\n", s.Failed)
	}
}
