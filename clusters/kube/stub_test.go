package kube_test

import (
	"rollcall.dev/rollcall/clusters/kubetest"
	"testing"
)

func testLeastRole(t *testing.T, cp *kubetest.ControlPlane) {}
func testKills(t *testing.T, cp *kubetest.ControlPlane) {}
