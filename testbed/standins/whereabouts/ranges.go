package main

import (
	"errors"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
)

// ipam is the plugin's configuration in a network.
type ipam struct {
	Range      string   `json:"range"`
	RangeStart string   `json:"range_start"`
	RangeEnd   string   `json:"range_end"`
	Exclude    []string `json:"exclude"`
	Gateway    string   `json:"gateway"`
	Routes     []struct {
		Dst string `json:"dst"`
	} `json:"routes"`
	Kubernetes struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"kubernetes"`
}

// addresses is what a configuration means: a subnet, its part to be given out, and what is left out of that.
type addresses struct {
	subnet      netip.Prefix
	first, last netip.Addr
	exclude     []netip.Prefix
}

func (c ipam) addresses() (addresses, error) {
	text, start, end := c.Range, c.RangeStart, c.RangeEnd
	if low, high, both := strings.Cut(text, "-"); both { // a-b/len
		_, length, _ := strings.Cut(high, "/")
		start, end, text = low, strings.TrimSuffix(high, "/"+length), low+"/"+length
	}
	subnet, err := netip.ParsePrefix(text)
	if err != nil {
		return addresses{}, fmt.Errorf("invalid range %q: %w", c.Range, err)
	}
	subnet = subnet.Masked()
	if subnet.Addr().BitLen()-subnet.Bits() < 2 {
		return addresses{}, fmt.Errorf("net mask is too short, subnet %s has no usable IP addresses, it is too small", subnet)
	}
	a := addresses{subnet: subnet, first: subnet.Addr().Next(), last: lastOf(subnet).Prev()}
	usable := func(text string) (netip.Addr, bool) {
		address, err := netip.ParseAddr(text)
		return address, err == nil && !address.Less(a.first) && !a.last.Less(address)
	}
	if address, ok := usable(start); ok {
		a.first = address
	}
	if address, ok := usable(end); ok {
		a.last = address
	}
	for _, text := range c.Exclude {
		if !strings.Contains(text, "/") {
			text += fmt.Sprintf("/%d", subnet.Addr().BitLen())
		}
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return a, fmt.Errorf("could not parse exclude range %q: %w", text, err)
		}
		a.exclude = append(a.exclude, prefix.Masked())
	}
	return a, nil
}

// lowest is the first address that is neither taken nor excluded; whole excluded networks are jumped over.
func (a addresses) lowest(taken map[netip.Addr]bool) (netip.Addr, error) {
	for address := a.first; address.IsValid() && !a.last.Less(address); address = address.Next() {
		i := slices.IndexFunc(a.exclude, func(p netip.Prefix) bool { return p.Contains(address) })
		if i >= 0 {
			address = lastOf(a.exclude[i])
		} else if !taken[address] {
			return address, nil
		}
	}
	return netip.Addr{}, errors.New("could not allocate IP in range: ip: " + a.first.String() + " / - " + a.last.String())
}

// offset is an address's key in an IPPool: how far it is from the network address.
func (a addresses) offset(address netip.Addr) string {
	base, own := new(big.Int).SetBytes(a.subnet.Addr().AsSlice()), new(big.Int).SetBytes(address.AsSlice())
	return own.Sub(own, base).String()
}

func (a addresses) at(offset string) (netip.Addr, bool) {
	n, ok := new(big.Int).SetString(offset, 10)
	if !ok {
		return netip.Addr{}, false
	}
	raw := make([]byte, a.subnet.Addr().BitLen()/8)
	sum := n.Add(n, new(big.Int).SetBytes(a.subnet.Addr().AsSlice()))
	if n.Sign() < 0 || sum.BitLen() > len(raw)*8 {
		return netip.Addr{}, false
	}
	address, ok := netip.AddrFromSlice(sum.FillBytes(raw))
	return address, ok
}

// poolName is the range as the name of an object.
func (a addresses) poolName() string {
	return strings.NewReplacer(":", "-", "/", "-").Replace(a.subnet.String())
}

func lastOf(p netip.Prefix) netip.Addr {
	raw := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(raw)*8; bit++ {
		raw[bit/8] |= 1 << (7 - bit%8)
	}
	address, _ := netip.AddrFromSlice(raw)
	return address
}
