// Package controller is the straight line from a commit to a report: for one
// cluster (Reconcile), for a fleet (Fleet.Report) and again and again (Loop).
// It knows the ports and the pure stages, not the edges that fill the ports.
package controller
