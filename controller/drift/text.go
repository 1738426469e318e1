package drift

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const hidden = "(hidden)"

// secretName finds names of what is likely to be a secret: of variables, keys
// and flags.
var secretName = regexp.MustCompile(`(?i)pass(word|wd|phrase)?$|passw|token|secret|credential|private_?-?key|api_?-?key|access_?-?key|auth_?-?key`)

// location finds names that only say where a secret is.
var location = regexp.MustCompile(`(?i)[_-]?(file|path|name|dir|directory|url|enabled|ttl|audience)$`)

func isSecretName(name string) bool {
	return secretName.MatchString(name) && !location.MatchString(name)
}

// assigned finds a secret in a flag, a line of configuration or a URL.
var assigned = regexp.MustCompile(`(?i)([a-z0-9_.-]*(?:passw(?:or)?d|passphrase|token|secret|credential|private[_-]?key|api[_-]?key|access[_-]?key)[a-z0-9_-]*["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s,;"'{\[]+)`)

// login is a user and a password before a host.
var login = regexp.MustCompile(`://[^/\s@"']+@`)

// Masked is a text without what looks like a secret.
func Masked(s string) string {
	s = login.ReplaceAllString(s, "://"+hidden+"@")
	return assigned.ReplaceAllStringFunc(s, func(m string) string {
		parts := assigned.FindStringSubmatch(m)
		if name := strings.TrimRight(parts[1], "=: \t\"'"); location.MatchString(name) {
			return m
		}
		return parts[1] + hidden
	})
}

// hides tells whether the value at the end of a path may be a secret: of an
// environment variable, or under a key, whose name says so.
func hides(at []step) bool {
	for i, s := range at {
		if s.item != "" && i > 0 && at[i-1].name == "env" && isSecretName(strings.TrimSuffix(strings.TrimPrefix(s.item, "[name="), "]")) {
			return len(at) == i+1 || at[i+1].name == "value"
		}
		if s.key && isSecretName(s.name) {
			return true
		}
	}
	return false
}

// text writes a value for a reader: plain text as it is, all else as JSON.
func text(v reflect.Value, hide bool) string {
	switch {
	case !v.IsValid():
		return ""
	case hide:
		return hidden
	case v.Kind() == reflect.String:
		return Masked(v.String())
	}
	if q, ok := v.Interface().(resource.Quantity); ok {
		return q.String()
	}
	if b, ok := v.Interface().([]byte); ok {
		return fmt.Sprintf("%d bytes", len(b))
	}
	if e, ok := v.Interface().(corev1.Container); ok {
		v = reflect.ValueOf(withoutSecrets(e))
	}
	data, err := json.Marshal(v.Interface())
	if err != nil {
		return "(cannot be shown)"
	}
	return Masked(string(data))
}

// withoutSecrets hides what variables hold whose names say that it is secret.
func withoutSecrets(c corev1.Container) corev1.Container {
	env := make([]corev1.EnvVar, len(c.Env))
	copy(env, c.Env)
	for i := range env {
		if env[i].Value != "" && isSecretName(env[i].Name) {
			env[i].Value = hidden
		}
	}
	c.Env = env
	return c
}
