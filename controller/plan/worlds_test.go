//go:build !race

package plan_test

// worlds is how many random worlds are tried.
const worlds = 5000
