package main

import (
	"net/netip"
	"testing"
)

func TestLowest(t *testing.T) {
	for _, c := range []struct {
		name  string
		conf  ipam
		taken []string
		want  string // empty: an error
	}{
		{"not the network address", ipam{Range: "10.5.0.0/24"}, nil, "10.5.0.1"},
		{"host bits do not matter", ipam{Range: "10.5.0.77/24"}, nil, "10.5.0.1"},
		{"lowest free", ipam{Range: "10.5.0.0/24"}, []string{"10.5.0.1", "10.5.0.3"}, "10.5.0.2"},
		{"from range_start", ipam{Range: "10.5.0.0/24", RangeStart: "10.5.0.128"}, nil, "10.5.0.128"},
		{"range_start outside is ignored", ipam{Range: "10.5.0.0/24", RangeStart: "10.6.0.9"}, nil, "10.5.0.1"},
		{"up to range_end", ipam{Range: "10.5.0.0/24", RangeStart: "10.5.0.9", RangeEnd: "10.5.0.9"}, []string{"10.5.0.9"}, ""},
		{"not the broadcast address", ipam{Range: "10.5.0.0/30"}, []string{"10.5.0.1", "10.5.0.2"}, ""},
		{"a-b/len", ipam{Range: "10.5.0.130-10.5.0.140/24"}, nil, "10.5.0.130"},
		{"low half excluded", ipam{Range: "10.5.0.0/24", Exclude: []string{"10.5.0.0/25"}}, nil, "10.5.0.128"},
		{"host bits of an exclude are masked", ipam{Range: "10.5.0.0/24", Exclude: []string{"10.5.0.9/25"}}, nil, "10.5.0.128"},
		{"a bare address is excluded", ipam{Range: "10.5.0.0/24", Exclude: []string{"10.5.0.1"}}, nil, "10.5.0.2"},
		{"all of it excluded", ipam{Range: "10.5.0.0/25", Exclude: []string{"10.5.0.0/25"}}, nil, ""},
		{"bad exclude", ipam{Range: "10.5.0.0/24", Exclude: []string{"10.5.0.300/25"}}, nil, ""},
		{"too long a mask", ipam{Range: "10.5.0.0/31"}, nil, ""},
		{"no range", ipam{Range: "rdma"}, nil, ""},
		{"IPv6", ipam{Range: "fd00:5::/64", Exclude: []string{"fd00:5::/65"}}, nil, "fd00:5::8000:0:0:0"},
	} {
		a, err := c.conf.addresses()
		var got netip.Addr
		if err == nil {
			taken := map[netip.Addr]bool{}
			for _, address := range c.taken {
				taken[netip.MustParseAddr(address)] = true
			}
			got, err = a.lowest(taken)
		}
		if c.want == "" && err == nil || c.want != "" && (err != nil || got != netip.MustParseAddr(c.want)) {
			t.Errorf("%s: %v, %v", c.name, got, err)
		}
	}
}

func TestOffsets(t *testing.T) {
	for text, want := range map[string]string{"10.5.0.0/16 10.5.1.2": "258", "fd00:5::/64 fd00:5::8000:0:0:1": "9223372036854775809"} {
		var prefix, address string
		for i, r := range text {
			if r == ' ' {
				prefix, address = text[:i], text[i+1:]
			}
		}
		a, err := ipam{Range: prefix}.addresses()
		if err != nil {
			t.Fatal(err)
		}
		at := netip.MustParseAddr(address)
		if got := a.offset(at); got != want {
			t.Errorf("%s: offset %s, want %s", text, got, want)
		}
		if back, ok := a.at(want); !ok || back != at {
			t.Errorf("%s: %s is %v", text, want, back)
		}
	}
}
