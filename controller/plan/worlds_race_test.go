//go:build race

package plan_test

// worlds are fewer where each takes ten times as long; nothing in them runs side
// by side.
const worlds = 300
