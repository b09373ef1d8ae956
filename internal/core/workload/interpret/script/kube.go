package script

import (
	"fmt"

	lua "github.com/yuin/gopher-lua"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/argosy-io/argosy/internal/core/workload/interpret"
)

// kubeFunctions are the functions of the kube library for pods and quantities.
var kubeFunctions = map[string]lua.LGFunction{
	"accuratePodRequirements": accuratePodRequirements,
	"getPodDependencies":      getPodDependencies,
	"resourceAdd":             resourceAdd,
	"getResourceQuantity":     getResourceQuantity,
}

// accuratePodRequirements(podTemplate) returns the requirements of one pod.
func accuratePodRequirements(l *lua.LState) int {
	t := podTemplate(l, "accuratePodRequirements")
	return pushTyped(l, interpret.PodRequirements(t, t.Namespace))
}

// getPodDependencies(podTemplate, namespace) returns references to what a pod needs to start.
func getPodDependencies(l *lua.LState) int {
	t := podTemplate(l, "getPodDependencies")
	return pushTyped(l, interpret.PodDependencies(t, l.OptString(2, "")))
}

// podTemplate decodes the first argument, directly from the object if the script did not change it.
func podTemplate(l *lua.LState, function string) *corev1.PodTemplateSpec {
	arg, ok := l.Get(1).(*lua.LTable)
	if !ok {
		l.RaiseError("kube.%s takes a pod template, such as obj.spec.template; it got %s", function, describe(l.Get(1)))
	}
	r := runOf(l)
	r.spend(256)
	var raw any
	if given, ok := r.asGiven(arg); ok {
		raw = given
	} else {
		v, _, misfit := (&reader{run: r}).value(arg, nil, nil, 0)
		if misfit != nil {
			l.RaiseError("kube.%s: the pod template: %s", function, misfit.Error())
		}
		raw = v
	}
	object, ok := raw.(map[string]any)
	if !ok {
		l.RaiseError("kube.%s takes a pod template, which is an object; it got a list", function)
	}
	t := &corev1.PodTemplateSpec{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, t); err != nil {
		l.RaiseError("kube.%s: the pod template: %s", function, err.Error())
	}
	return t
}

// typedBytes is the approximate size of a result of the library.
const typedBytes = 2 << 10

// pushTyped passes a closed table to the script. It costs nothing if the script returns it unchanged.
func pushTyped(l *lua.LState, v any) int {
	r := runOf(l)
	r.grow(typedBytes)
	r.leaked += typedBytes // its source is kept until the call ends
	l.Push(r.closed(v))
	return 1
}

// quantity returns a quantity argument: a string such as 500m, or a number; false for nil.
func quantity(l *lua.LState, n int, function string) (resource.Quantity, bool) {
	v := l.Get(n)
	if v == lua.LNil {
		return resource.Quantity{}, false
	}
	if !lua.LVCanConvToString(v) {
		l.RaiseError("kube.%s takes quantities such as \"500m\"; argument %d is %s", function, n, describe(v))
	}
	q, err := resource.ParseQuantity(v.String())
	if err != nil {
		l.RaiseError("kube.%s takes quantities such as \"500m\"; argument %d is %s", function, n, describe(v))
	}
	return q, true
}

// resourceAdd(a, b, …) returns the sum of quantities. nil counts as zero.
func resourceAdd(l *lua.LState) int {
	var sum resource.Quantity
	for i := 1; i <= l.GetTop(); i++ {
		if q, ok := quantity(l, i, "resourceAdd"); ok {
			if sum.IsZero() {
				sum.Format = q.Format
			}
			sum.Add(q)
		}
	}
	runOf(l).grow(32)
	return push(l, sum.String())
}

// getResourceQuantity(q) returns a quantity as a number in its base unit.
func getResourceQuantity(l *lua.LState) int {
	q, ok := quantity(l, 1, "getResourceQuantity")
	if !ok {
		l.RaiseError("%s", fmt.Sprintf("kube.getResourceQuantity takes a quantity such as \"500m\"; it got %s",
			describe(l.Get(1))))
	}
	l.Push(lua.LNumber(q.AsApproximateFloat64()))
	return 1
}
