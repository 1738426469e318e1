package clusters

import (
	"errors"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"rollcall.dev/rollcall/sync/schedule"
)

// folder checks a path inside the repository. It may hold variables, so its
// end result is checked again by whoever fills them in.
func (d *document) folder(at *field.Path, p string) string {
	clean := path.Clean(p)
	switch {
	case p == "":
		d.add(field.Required(at, "a folder of the repository"))
	case strings.Contains(p, "://") || strings.Contains(p, "?ref="):
		d.add(field.Invalid(at, field.OmitValueType{}, "must be a folder of the repository: remote bases are refused"))
	case path.IsAbs(p):
		d.add(field.Invalid(at, p, "must be relative to the root inside the repository"))
	case strings.Contains(p, `\`):
		d.add(field.Invalid(at, p, "must be written with /"))
	case clean == ".." || strings.HasPrefix(clean, "../"):
		d.add(field.Invalid(at, p, "must not leave the repository"))
	}
	return p
}

// cron checks a schedule and the time zone that it is meant in.
func (d *document) cron(at *field.Path, spec string, zoneAt *field.Path, zone string) string {
	if _, err := schedule.Parse("@daily", zone); err != nil && zoneAt != nil {
		d.add(field.Invalid(zoneAt, zone, bare(err)))
		zone = "UTC"
	}
	if _, err := schedule.Parse(spec, zone); err != nil {
		d.add(field.Invalid(at, spec, bare(err)))
	}
	return spec
}

// bare drops what was being done from an error: the path tells it.
func bare(err error) string {
	if inner := errors.Unwrap(err); inner != nil {
		return inner.Error()
	}
	return err.Error()
}

func (d *document) duration(at *field.Path, text *string, otherwise time.Duration) time.Duration {
	if text == nil {
		return otherwise
	}
	v, err := time.ParseDuration(*text)
	switch {
	case *text == "":
		d.add(field.Required(at, "a duration such as 5m"))
	case err != nil:
		d.add(field.Invalid(at, *text, "must be a duration such as 5m"))
	case v <= 0:
		d.add(field.Invalid(at, *text, "must be more than 0"))
	}
	return v
}

var number = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})(%?)$`)

// amount checks a number or a percentage.
func (d *document) amount(at *field.Path, text *amount, otherwise string) string {
	if text == nil {
		return otherwise
	}
	m := number.FindStringSubmatch(string(*text))
	if m == nil {
		d.add(field.Invalid(at, string(*text), "must be a number or a percentage, such as 3 or 10%"))
	} else if n, _ := strconv.Atoi(m[1]); m[2] == "%" && n > 100 {
		d.add(field.Invalid(at, string(*text), "must be at most 100%"))
	}
	return string(*text)
}

// min checks how many nodes an agent must cover at least.
func (d *document) min(at *field.Path, text *amount) string {
	if text == nil {
		return "100%"
	}
	if _, _, ok := parseMin(string(*text)); !ok {
		d.add(field.Invalid(at, string(*text), "must be a number of nodes or a percentage of them, more than 0 and at most 100%, such as 3 or 99.5%"))
	}
	return string(*text)
}

// oneOf returns the first of the values when none is written.
func (d *document) oneOf(at *field.Path, text *string, values ...string) string {
	if text == nil {
		return values[0]
	}
	if !slices.Contains(values, *text) {
		d.add(field.NotSupported(at, *text, values))
	}
	return *text
}

func (d *document) day(at *field.Path, text day) time.Time {
	t, err := time.Parse(time.DateOnly, string(text))
	switch {
	case text == "":
		d.add(field.Required(at, "the day on which it ends, such as 2026-12-31"))
	case err != nil:
		d.add(field.Invalid(at, string(text), "must be a day such as 2026-12-31"))
	}
	return t
}

func (d *document) unique(at *field.Path, name string, seen map[string]bool) string {
	if name != "" && seen[name] {
		d.add(field.Duplicate(at, name))
	}
	seen[name] = true
	return d.name(at, name)
}

func (d *document) name(at *field.Path, name string) string {
	if name == "" {
		d.add(field.Required(at, "a name"))
		return ""
	}
	d.invalid(at, name, validation.IsDNS1123Subdomain(name))
	return name
}

func (d *document) invalid(at *field.Path, value string, details []string) {
	for _, detail := range details {
		d.add(field.Invalid(at, value, detail))
	}
}

func (d *document) labels(at *field.Path, labels map[string]string) map[string]string {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		d.invalid(at, key, validation.IsQualifiedName(key))
		d.invalid(at.Key(key), labels[key], validation.IsValidLabelValue(labels[key]))
	}
	return labels
}

// taints checks taint keys; one that ends in * stands for all that start so.
func (d *document) taints(at *field.Path, keys []string) []string {
	for i, key := range keys {
		if strings.HasSuffix(key, "*") {
			key = key[:len(key)-1] + "x"
		}
		if details := validation.IsQualifiedName(key); len(details) > 0 {
			d.add(field.Invalid(at.Index(i), keys[i], "must be the key of a taint, without value and effect"))
		}
	}
	return keys
}

func (d *document) word(at *field.Path, text string) string {
	if strings.TrimSpace(text) == "" {
		d.add(field.Required(at, ""))
	}
	return text
}

func (d *document) words(at *field.Path, all []string) []string {
	for i, text := range all {
		d.word(at.Index(i), text)
	}
	return all
}

func or(text *string, otherwise string) string {
	if text == nil {
		return otherwise
	}
	return *text
}
