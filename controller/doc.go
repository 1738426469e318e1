// Package controller is the straight line from a commit to a report: for one
// cluster (Line.Reconcile) and for all clusters of a fleet (Reconcile).
// It knows the ports and the pure stages, not the edges that fill the ports.
package controller
