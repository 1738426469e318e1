package render

import "strings"

// hidden stands for a value that SOPS has encrypted. What it is belongs to
// whoever has the key, and what it looks like to nobody.
const hidden = "(encrypted by SOPS, not shown)"

// Opaque returns an object to print: what SOPS has encrypted is left out. Other
// objects are returned as they are.
func Opaque(object map[string]any) map[string]any {
	if _, ok := object["sops"].(map[string]any); !ok && !encrypted(object) {
		return object
	}
	out, _ := opaque(object).(map[string]any)
	if _, ok := out["sops"]; ok {
		out["sops"] = hidden
	}
	return out
}

func isEncrypted(text string) bool { return strings.HasPrefix(text, "ENC[AES256_GCM,") }

func encrypted(v any) bool {
	switch v := v.(type) {
	case string:
		return isEncrypted(v)
	case []any:
		for _, item := range v {
			if encrypted(item) {
				return true
			}
		}
	case map[string]any:
		for _, item := range v {
			if encrypted(item) {
				return true
			}
		}
	}
	return false
}

func opaque(v any) any {
	switch v := v.(type) {
	case string:
		if isEncrypted(v) {
			return hidden
		}
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = opaque(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, item := range v {
			out[key] = opaque(item)
		}
		return out
	}
	return v
}
