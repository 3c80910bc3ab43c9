package main

import (
	"reflect"
	"testing"

	"ipu.fabric/standins/internal/ipu"
)

func TestParseControllers(t *testing.T) {
	for text, want := range map[string][]ipu.Partition{
		"10.5.0.20:8090:ipunode=true\n": {{Host: "10.5.0.20", Port: "8090", Label: "ipunode", Value: "true"}},
		"[fd00::2]:8090:a/b=c,pod2:1:x=y": {{Host: "fd00::2", Port: "8090", Label: "a/b", Value: "c"},
			{Host: "pod2", Port: "1", Label: "x", Value: "y"}},
	} {
		if got, err := parseControllers(text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "10.5.0.20:8090", "fd00::2:8090:a=b", "host:8090:label"} {
		if got, err := parseControllers(bad); err == nil {
			t.Errorf("%q: %+v, want an error", bad, got)
		}
	}
}

func TestPlaceAndUsage(t *testing.T) {
	controllers := []ipu.Partition{{Host: "a", Port: "1"}, {Host: "b", Port: "1"}}
	var list []ipu.Partition
	for i, c := range []struct {
		size int
		host string
	}{{16, "a"}, {8, "a"}, {16, "b"}, {8, "a"}, {16, "b"}, {1, ""}} {
		placed, err := place(list, controllers, ipu.Partition{Namespace: "default", Size: c.size})
		if c.host == "" {
			if err == nil {
				t.Errorf("step %d: %+v, want no room", i, placed)
			}
			continue
		}
		if err != nil || placed[len(placed)-1].Host != c.host {
			t.Errorf("step %d: %+v, %v", i, placed, err)
		}
		list = placed
	}
	want := map[string]counts{"default": {64, 0}, "total": {64, 0}}
	if got := usage(list, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("usage %v", got)
	}
}
