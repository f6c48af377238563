// A map as objects had it before BTF.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct legacy_map {
	__u32 type, key_size, value_size, max_entries, map_flags;
};

struct legacy_map SEC("maps") counters = { BPF_MAP_TYPE_ARRAY, 4, 8, 1, 0 };

SEC("xdp")
int count(struct xdp_md *ctx)
{
	__u32 key = 0;
	__u64 *value = bpf_map_lookup_elem(&counters, &key);

	if (value)
		*value += 1;
	return XDP_PASS;
}
