//go:build race

package controller

// raced is true with the race detector, which changes the order of what happens at the same time.
const raced = true
