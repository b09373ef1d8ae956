package match

import (
	"math/rand/v2"
	"slices"

	"github.com/argosy-io/argosy/test/kit/coretest"
)

var (
	cluster  = coretest.Cluster
	labelled = coretest.Labelled
	located  = coretest.Located
)

// rng is seeded, so that a failure names the seed that shows it.
func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func shuffled[T any](r *rand.Rand, list []T) []T {
	list = slices.Clone(list)
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}
