package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/argosy-io/argosy/api/cluster/v1alpha1"
	ocmclusterv1 "github.com/argosy-io/argosy/api/ocm/cluster/v1"
	policyv1alpha1 "github.com/argosy-io/argosy/api/policy/v1alpha1"
	workv1alpha2 "github.com/argosy-io/argosy/api/work/v1alpha2"
	"github.com/argosy-io/argosy/internal/agent"
	"github.com/argosy-io/argosy/internal/core/cluster/membership"
	"github.com/argosy-io/argosy/internal/core/cluster/pull"
	"github.com/argosy-io/argosy/internal/lab"
	"github.com/argosy-io/argosy/internal/server/pki"
	"github.com/argosy-io/argosy/internal/sim"
	"github.com/argosy-io/argosy/test/kit/memserver"
)

const (
	// agentRest is the time between a cluster's Ready and the measurement, and agentIdle that of the measurement.
	agentRest, agentIdle = 20 * time.Second, time.Minute
	// agentStarts is how many agents start in a second. Each needs some ten milliseconds of CPU for that.
	agentStarts = 20
	// agentStatus is the status frequency of the simulated agents: all share the CPU of this machine with the hub. The
	// single agent has the default.
	agentStatus = time.Minute
)

// pullMode measures the agent of a cluster in Pull mode, and a hub with many of them. It takes about five minutes.
func pullMode(ctx context.Context, o Options) ([]Row, error) {
	if o.Agents == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Minute)
	defer cancel()
	rows, err := idleAgent(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("idle agent: %w", err)
	}
	fleet, err := agentFleet(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("%d agents: %w", o.Agents, err)
	}
	return append(rows, fleet...), nil
}

// idleAgent measures the process of an agent, which a user registers, in a member without workloads.
func idleAgent(ctx context.Context, o Options) ([]Row, error) {
	const name = "agent"
	o.Say("idle agent: starting a hub, a member and its agent")
	h, err := startHub(ctx, o, "agent-hub")
	if err != nil {
		return nil, err
	}
	l := &lab.Lab{Hub: h}
	defer func() { _ = l.Stop() }() // the figures are taken
	if l.Fleet, err = sim.Start(ctx, sim.Options{Binary: o.Binary, Dir: o.Dir + "/agent-member",
		Members: []sim.Member{{Name: name}}}); err != nil {
		return nil, err
	}
	kubeconfig := l.Fleet.Members()[0].Kubeconfig
	command, err := l.Argosy(ctx, "token", "create", "--cluster-name", name, "--print-register-command")
	if err != nil {
		return nil, fmt.Errorf("create a token: %w: %s", err, command)
	}
	// The first word is the name of the command.
	args := append(strings.Fields(command)[1:], "--cluster-kubeconfig", kubeconfig, "--apply")
	if out, err := l.Argosy(ctx, args...); err != nil {
		return nil, fmt.Errorf("register the cluster: %w: %s", err, out)
	}
	output, err := os.Create(o.Dir + "/agent.log")
	if err != nil {
		return nil, err
	}
	defer output.Close()
	process := exec.CommandContext(ctx, o.Binary, "agent", "--cluster-name", name, "--cluster-kubeconfig", kubeconfig)
	process.Stdout, process.Stderr = output, output
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := process.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = process.Process.Kill(); _ = process.Wait() }() // the figures are taken
	_, c, err := pullClient(h)
	if err != nil {
		return nil, err
	}
	if err := readyClusters(ctx, c, 1); err != nil {
		return nil, err
	}

	o.Say("idle agent: measuring")
	before, after, err := idleUse(ctx, process.Process.Pid, agentIdle)
	if err != nil {
		return nil, err
	}
	return []Row{
		{Work: "idle agent: memory of its own", Unit: "MiB", Value: mib(after.Private), Must: 40},
		{Work: "… with the pages of the binary that processes on this machine share", Unit: "MiB", Value: mib(after.Memory)},
		{Work: "… CPU", Unit: "m", Value: (after.CPU - before.CPU).Seconds() * 1000 / agentIdle.Seconds(), Must: 5},
	}, nil
}

// idleUse waits for agentRest, then measures a process at the start and at the end of a period.
func idleUse(ctx context.Context, pid int, period time.Duration) (before, after processUsage, err error) {
	if err := pause(ctx, agentRest); err != nil {
		return before, after, err
	}
	if before, err = readUsage(pid); err != nil {
		return before, after, err
	}
	if err := pause(ctx, period); err != nil {
		return before, after, err
	}
	after, err = readUsage(pid)
	return before, after, err
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// pullClient returns a client of the hub for what this measurement reads and writes, and its configuration.
func pullClient(h *lab.Hub) (*rest.Config, client.Client, error) {
	config, err := h.Config()
	if err != nil {
		return nil, nil, err
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, clusterv1alpha1.AddToScheme,
		policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme, ocmclusterv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, nil, err
		}
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	return config, c, err
}

// readyClusters waits until n clusters are Ready.
func readyClusters(ctx context.Context, c client.Client, n int) error {
	for {
		var list clusterv1alpha1.ClusterList
		if err := c.List(ctx, &list, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}); err != nil {
			return err
		}
		ready := 0
		for i := range list.Items {
			if meta.IsStatusConditionTrue(list.Items[i].Status.Conditions, clusterv1alpha1.ClusterConditionReady) {
				ready++
			}
		}
		if ready == n {
			return nil
		}
		if err := pause(ctx, 2*time.Second); err != nil {
			return fmt.Errorf("%d of %d clusters are Ready: %w", ready, n, err)
		}
	}
}

// agentFleet measures a hub with many agents, which run in this process with the code of real ones, in members in
// memory.
func agentFleet(ctx context.Context, o Options) ([]Row, error) {
	// 1. Start the hub and the agents.
	o.Say("%d agents: starting a hub", o.Agents)
	h, err := startHub(ctx, o, "agents")
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Stop() }() // the figures are taken
	config, c, err := pullClient(h)
	if err != nil {
		return nil, err
	}
	own, err := readUsage(os.Getpid())
	if err != nil {
		return nil, err
	}
	o.Say("%d agents: starting them", o.Agents)
	members, stop, err := startAgents(ctx, o, h, c)
	defer stop()
	if err != nil {
		return nil, err
	}
	if err := readyClusters(ctx, c, o.Agents); err != nil {
		return nil, err
	}

	// 2. All are idle.
	o.Say("%d agents: idle", o.Agents)
	before, idle, err := idleUse(ctx, h.PID(), agentRest)
	if err != nil {
		return nil, err
	}
	all, err := readUsage(os.Getpid())
	if err != nil {
		return nil, err
	}
	rows := []Row{
		{Work: fmt.Sprintf("%d agents on one hub, idle: hub memory", o.Agents), Unit: "MiB", Value: mib(idle.Memory),
			Must: 4096},
		{Work: "… hub CPU", Unit: "cores", Value: (idle.CPU - before.CPU).Seconds() / agentRest.Seconds()},
		{Work: "… memory per agent with its member, in one process", Unit: "MiB",
			Value: mib(all.Memory-own.Memory) / float64(o.Agents)},
	}

	// 3. A ConfigMap reaches all.
	o.Say("%d agents: a ConfigMap for all", o.Agents)
	arrived, err := measureArrival(ctx, o, h, config, c, members)
	if err != nil {
		return nil, err
	}
	return append(rows, arrived...), nil
}

// measureArrival creates a ConfigMap for all members.
func measureArrival(ctx context.Context, o Options, h *lab.Hub, config *rest.Config, c client.Client,
	members []*memserver.Server) ([]Row, error) {
	const name = "everywhere"
	at := metav1.ObjectMeta{Namespace: "default", Name: name}
	policy := &policyv1alpha1.PropagationPolicy{ObjectMeta: at, Spec: policyv1alpha1.PropagationSpec{
		ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "v1", Kind: "ConfigMap", Name: name}}}}
	if err := c.Create(ctx, policy); err != nil {
		return nil, err
	}
	written := func() (float64, error) { return sumMetric(ctx, config, "apiserver_request_total", isPropagationWrite) }
	before, err := written()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := c.Create(ctx, &corev1.ConfigMap{ObjectMeta: at, Data: map[string]string{"key": "value"}}); err != nil {
		return nil, err
	}
	var took time.Duration
	var most int64
	waiting := slices.Clone(members)
	if err := poll(ctx, "the ConfigMap does not reach all members", func() (bool, error) {
		used, err := readUsage(h.PID())
		if err != nil {
			return false, err
		}
		most = max(most, used.Memory)
		waiting = slices.DeleteFunc(waiting, func(m *memserver.Server) bool {
			return m.Object(memserver.ConfigMap, at.Namespace, name) != nil
		})
		if took == 0 && len(waiting) == 0 {
			took = time.Since(began)
		}
		var b workv1alpha2.ResourceBinding
		err = c.Get(ctx, client.ObjectKey{Namespace: at.Namespace, Name: name + "-configmap"}, &b)
		return took > 0 && len(b.Status.AggregatedStatus) == len(members) &&
			meta.IsStatusConditionTrue(b.Status.Conditions, workv1alpha2.FullyApplied), client.IgnoreNotFound(err)
	}); err != nil {
		return nil, fmt.Errorf("%w; %d of %d lack it", err, len(waiting), len(members))
	}
	reported := time.Since(began)
	if err := pause(ctx, 5*time.Second); err != nil { // the template gets the status last
		return nil, err
	}
	after, err := written()
	if err != nil {
		return nil, err
	}
	// The writes are those of Push mode, see ARCHITECTURE.md, and a fifth more as for few members.
	writes := 4 + 2*float64(o.Agents)
	return []Row{
		{Work: "… a new ConfigMap: in all of them", Unit: "s", Value: took.Seconds(), Must: 60},
		{Work: "… until the binding has the result of all", Unit: "s", Value: reported.Seconds()},
		{Work: "… hub memory at most meanwhile", Unit: "MiB", Value: mib(most), Must: 4096},
		{Work: "… hub writes for it", Unit: "writes", Value: after - before, Must: 1.2 * writes, Aim: writes},
	}, nil
}

// isPropagationWrite selects successful writes of what a ConfigMap costs from the requests that the API server counts.
func isPropagationWrite(line string) bool {
	has := func(label string, values ...string) bool {
		return slices.ContainsFunc(values, func(v string) bool { return strings.Contains(line, label+`="`+v) })
	}
	return has("verb", "POST", "PUT", "PATCH", "APPLY", "DELETE") && has("code", "2") &&
		has("resource", "configmaps", "resourcebindings", "works", "manifestworks", "events")
}

// startAgents registers the clusters and starts their agents one after the other. stop ends those that run, also after
// an error.
func startAgents(ctx context.Context, o Options, h *lab.Hub,
	c client.Client) (members []*memserver.Server, stop func(), err error) {
	running, cancel := context.WithCancel(ctx)
	var agents sync.WaitGroup
	var servers []*http.Server
	stop = func() {
		cancel()
		agents.Wait()
		for _, s := range servers {
			_ = s.Close() // the agents are gone
		}
	}
	signer, err := newAgentSigner(h)
	if err != nil {
		return nil, stop, err
	}
	if err := runParallel(o.Agents, o.Workers, func(i int) error {
		return c.Create(ctx, &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: clusterName(i)},
			Spec: clusterv1alpha1.ClusterSpec{SyncMode: clusterv1alpha1.Pull}})
	}); err != nil {
		return nil, stop, fmt.Errorf("create clusters: %w", err)
	}
	for i := range o.Agents {
		kubeconfig, err := signer.kubeconfig(pull.User(clusterName(i)), pull.Group)
		if err != nil {
			return nil, stop, err
		}
		m := newAgentMember(kubeconfig)
		server := &http.Server{Handler: m}
		address := clusterName(i) + ".bench:80"
		listener := memserver.Listen(address)
		go func() { _ = server.Serve(listener) }() // until it is closed
		members, servers = append(members, m), append(servers, server)
		agents.Go(func() {
			keepRunning(running, agent.Options{Cluster: clusterName(i), Namespace: agent.DefaultNamespace,
				Secret: agent.SecretName, StatusFrequency: agentStatus, Tunnel: true, Workers: 5, WorkDeletions: 10,
				Thresholds: membership.Thresholds{Failure: 30 * time.Second, Success: 30 * time.Second}, Alone: true,
				Member: &rest.Config{Host: "http://" + address, BearerToken: memserver.Token, Dial: memserver.Dial, QPS: -1}})
		})
		if err := pause(ctx, time.Second/agentStarts); err != nil {
			return nil, stop, err
		}
	}
	return members, stop, nil
}

// keepRunning starts an agent again when it ends, as its Deployment does: the hub may not have granted it permissions
// yet.
func keepRunning(ctx context.Context, o agent.Options) {
	for ctx.Err() == nil {
		_ = agent.Run(ctx, o) // a cluster that is not ready reports it
		_ = pause(ctx, 5*time.Second)
	}
}

// newAgentMember returns a member with one node, and the credentials of its agent.
func newAgentMember(kubeconfig []byte) *memserver.Server {
	secrets := memserver.Kind{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"), Plural: "secrets",
		Namespaced: true}
	m := memserver.New(memserver.Lease, secrets)
	of := func(kind string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: "v1", Kind: kind} }
	for _, name := range []string{"default", metav1.NamespaceSystem, agent.DefaultNamespace} {
		m.Put(&corev1.Namespace{TypeMeta: of("Namespace"), ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	m.Put(&corev1.Node{TypeMeta: of("Node"), ObjectMeta: metav1.ObjectMeta{Name: "node"}, Status: corev1.NodeStatus{
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("8"),
			corev1.ResourceMemory: resource.MustParse("32Gi"), corev1.ResourcePods: resource.MustParse("110")}}})
	m.Put(&corev1.Secret{TypeMeta: of("Secret"),
		ObjectMeta: metav1.ObjectMeta{Namespace: agent.DefaultNamespace, Name: agent.SecretName},
		Data:       map[string][]byte{agent.CredentialsKey: kubeconfig}})
	return m
}

// agentSigner signs certificates of agents with the authority of a hub. Requests to the hub, as registration makes
// them, would take minutes for a thousand agents.
type agentSigner struct {
	hub       *rest.Config
	authority tls.Certificate
	// key is the key of all agents.
	key    *ecdsa.PrivateKey
	keyPEM []byte
}

func newAgentSigner(h *lab.Hub) (*agentSigner, error) {
	s := &agentSigner{}
	var err error
	if s.hub, err = h.Config(); err != nil {
		return nil, err
	}
	if err := rest.LoadTLSFiles(s.hub); err != nil {
		return nil, err
	}
	files := pki.FilesIn(filepath.Join(h.Dir, "data", "pki"))
	if s.authority, err = tls.LoadX509KeyPair(files.ClusterCA, files.ClusterCAKey); err != nil {
		return nil, fmt.Errorf("read the authority of the hub: %w", err)
	}
	if s.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	s.keyPEM, err = keyutil.MarshalPrivateKeyToPEM(s.key)
	return s, err
}

// kubeconfig returns the credentials of an agent.
func (s *agentSigner) kubeconfig(user string, groups ...string) ([]byte, error) {
	if s.authority.Leaf == nil {
		return nil, errors.New("the authority of the hub has no certificate")
	}
	now := time.Now()
	raw, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(now.UnixNano()),
		Subject:   pkix.Name{CommonName: user, Organization: groups},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, s.authority.Leaf, s.key.Public(),
		s.authority.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", user, err)
	}
	const name = "hub"
	return clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{name: {Server: s.hub.Host, CertificateAuthorityData: s.hub.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{name: {ClientKeyData: s.keyPEM,
			ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	})
}
