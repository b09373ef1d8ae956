package estimator

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"
)

// The messages of the estimator, one per line with fields "NUMBER name type": earlier releases have Kubernetes' types
// as messages, later ones as bytes. A type ends with * if it is repeated; map<T> has string keys.
const (
	common = `
MaxAvailableReplicasRequest: 1 cluster string, 2 replicaRequirements ReplicaRequirements
MaxAvailableReplicasResponse: 1 maxReplicas int32
MaxAvailableComponentSetsRequest: 1 cluster string, 2 components Component*, 3 namespace string
MaxAvailableComponentSetsResponse: 1 maxSets int32
Component: 1 name string, 2 replicaRequirements ComponentReplicaRequirements, 3 replicas int32
Quantity: 1 string string
NodeSelector: 1 nodeSelectorTerms NodeSelectorTerm*
NodeSelectorTerm: 1 matchExpressions NodeSelectorRequirement*, 2 matchFields NodeSelectorRequirement*
NodeSelectorRequirement: 1 key string, 2 operator string, 3 values string*
Toleration: 1 key string, 2 operator string, 3 value string, 4 effect string, 5 tolerationSeconds int64`
	earlier = common + `
NodeClaim: 1 nodeAffinity NodeSelector, 2 nodeSelector map<string>, 3 tolerations Toleration*
ReplicaRequirements: 1 nodeClaim NodeClaim, 2 resourceRequest map<Quantity>, 3 namespace string, 4 priorityClassName string
ComponentReplicaRequirements: 1 nodeClaim NodeClaim, 2 resourceRequest map<Quantity>, 3 priorityClassName string`
	later = common + `
NodeClaim: 2 nodeSelector map<string>, 4 nodeAffinityBytes bytes, 5 tolerationsBytes bytes*
ReplicaRequirements: 1 nodeClaim NodeClaim, 3 namespace string, 4 priorityClassName string, 5 resourceRequestBytes map<bytes>
ComponentReplicaRequirements: 1 nodeClaim NodeClaim, 3 priorityClassName string, 4 resourceRequestBytes map<bytes>`
)

// describe builds message descriptors from a text in this form.
func describe(t *testing.T, text string) protoreflect.FileDescriptor {
	t.Helper()
	file := &descriptorpb.FileDescriptorProto{Name: proto.String("estimator.proto"), Syntax: proto.String("proto3"),
		Package: proto.String("github.com.karmada_io.karmada.pkg.estimator.pb")}
	scalars := map[string]descriptorpb.FieldDescriptorProto_Type{"string": descriptorpb.FieldDescriptorProto_TYPE_STRING,
		"bytes": descriptorpb.FieldDescriptorProto_TYPE_BYTES, "int32": descriptorpb.FieldDescriptorProto_TYPE_INT32,
		"int64": descriptorpb.FieldDescriptorProto_TYPE_INT64}
	number := func(s string) *int32 { return proto.Int32(int32(s[0] - '0')) }
	field := func(n *int32, name, kind string) *descriptorpb.FieldDescriptorProto {
		f := &descriptorpb.FieldDescriptorProto{Name: &name, JsonName: &name, Number: n,
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
		if strings.HasSuffix(kind, "*") {
			kind, f.Label = strings.TrimSuffix(kind, "*"), descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
		}
		if scalar, ok := scalars[kind]; ok {
			f.Type = scalar.Enum()
			return f
		}
		f.Type, f.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(),
			proto.String("."+file.GetPackage()+"."+kind)
		return f
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		name, fields, _ := strings.Cut(line, ": ")
		m := &descriptorpb.DescriptorProto{Name: &name}
		for _, text := range strings.Split(fields, ", ") {
			parts := strings.Fields(text)
			kind := parts[2]
			if value, ok := strings.CutPrefix(kind, "map<"); ok {
				entry := strings.ToUpper(parts[1][:1]) + parts[1][1:] + "Entry"
				m.NestedType = append(m.NestedType,
					&descriptorpb.DescriptorProto{Name: &entry, Options: &descriptorpb.MessageOptions{MapEntry: proto.Bool(true)},
						Field: []*descriptorpb.FieldDescriptorProto{field(proto.Int32(1), "key", "string"),
							field(proto.Int32(2), "value", strings.TrimSuffix(value, ">"))}})
				kind = name + "." + entry + "*"
			}
			m.Field = append(m.Field, field(number(parts[0]), parts[1], kind))
		}
		file.MessageType = append(file.MessageType, m)
	}
	d, err := protodesc.NewFile(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// peer is an estimator like Karmada's: a gRPC server with dynamic protocol buffer messages.
type peer struct {
	address string
	files   protoreflect.FileDescriptor

	mu    sync.Mutex
	asked []string // "METHOD request", the latest last
	calls int
	// answer is asked for each request; nil answers 7.
	answer func(ctx context.Context) (int32, error)
}

// newPeer starts a server for the messages in text until the test ends.
func newPeer(t *testing.T, text string, opts ...grpc.ServerOption) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newPeerAt(t, listener, text, opts...)
}

func newPeerAt(t *testing.T, listener net.Listener, text string, opts ...grpc.ServerOption) *peer {
	t.Helper()
	p := &peer{files: describe(t, text)}
	p.address = listener.Addr().String()
	server := grpc.NewServer(opts...)
	method := func(name, message, number string) grpc.MethodDesc {
		return grpc.MethodDesc{MethodName: name, Handler: func(_ any, ctx context.Context, decode func(any) error,
			_ grpc.UnaryServerInterceptor) (any, error) {
			in := p.message(message + "Request")
			if err := decode(in); err != nil {
				return nil, err
			}
			n, err := p.hear(ctx, name, in)
			if err != nil {
				return nil, err
			}
			out := p.message(message + "Response")
			out.Set(out.Descriptor().Fields().ByName(protoreflect.Name(number)), protoreflect.ValueOfInt32(n))
			return out, nil
		}}
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "github.com.karmada_io.karmada.pkg.estimator.service.Estimator", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{
			method("MaxAvailableReplicas", "MaxAvailableReplicas", "maxReplicas"),
			method("MaxAvailableComponentSets", "MaxAvailableComponentSets", "maxSets"),
		}}, p)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return p
}

func (p *peer) message(name string) *dynamicpb.Message {
	return dynamicpb.NewMessage(p.files.Messages().ByName(protoreflect.Name(name)))
}

func (p *peer) hear(ctx context.Context, method string, in *dynamicpb.Message) (int32, error) {
	// The library adds random spaces to the text; remove them.
	text := strings.ReplaceAll(strings.Join(strings.Fields(prototext.MarshalOptions{AllowPartial: true}.Format(known(in))),
		" "), ": ", ":")
	p.mu.Lock()
	p.calls++
	p.asked = append(p.asked, method+" "+text)
	answer := p.answer
	p.mu.Unlock()
	if answer == nil {
		return 7, nil
	}
	return answer(ctx)
}

// known returns a message without unknown fields, recursively.
func known(m *dynamicpb.Message) *dynamicpb.Message {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		panic(err)
	}
	out := dynamicpb.NewMessage(m.Descriptor())
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, out); err != nil {
		panic(err)
	}
	return out
}

// setAnswer has the peer answer so from now on.
func (p *peer) setAnswer(answer func(ctx context.Context) (int32, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

func (p *peer) requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// silent does not answer before the caller gives up.
func silent(ctx context.Context) (int32, error) {
	<-ctx.Done()
	return 0, status.FromContextError(ctx.Err()).Err()
}

func always(n int32) func(context.Context) (int32, error) {
	return func(context.Context) (int32, error) { return n, nil }
}

func fails(code codes.Code) func(context.Context) (int32, error) {
	return func(context.Context) (int32, error) { return 0, status.Error(code, "on purpose") }
}
