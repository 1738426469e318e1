// Package drift compares the objects that Git wants with those that live, field
// by field, and names who wrote what differs, by which operation and when. It
// asks no cluster, and shows no value that may be a secret.
//
// # What is a difference
//
// Desired must be part of live. Both are read into the Go types of Kubernetes'
// API, so that explicit zeros are as good as absent ones and quantities compare
// by value; lists are keyed as the API keys them. There is no table of the API's
// defaults, which would age. What only lives is judged by who owns it:
//
//   - in a DaemonSet's pod template an item of a list or a key of a map is
//     always a difference, since no default adds one; so is all that decides
//     where pods go;
//   - a single value is one if a program that does not deliver from Git wrote
//     it, or if a deliverer set it itself (by an apply, or by what kubectl says
//     that it applied last), so that it was in what somebody delivered;
//   - what is left is a default, or another program's business: it is listed as
//     foreign and is no drift. That holds for metadata, and for annotations of
//     the pod template.
//
// The order of a list is a difference by itself only where it means something:
// the init containers, a command and its arguments, envFrom.
package drift
