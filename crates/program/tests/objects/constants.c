// Constants that are known when a program is verified: an index that is compared with nothing, and a branch that is never taken.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

const volatile __u32 chosen = 5;
const volatile __s16 before = -2;
const volatile __u8 beyond = 0;
const volatile __s16 steps[3] = { 1, -2, 3 };
const volatile struct {
	__u32 first, second;
} pair = { 1, 2 };
__u64 counts[8];

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_RDONLY_PROG);
} settings SEC(".maps");

SEC("xdp/counted")
int counted(struct xdp_md *ctx)
{
	counts[chosen]++;
	counts[(int)chosen + before] += 10;
	if (beyond)
		counts[chosen + 1000]++;
	counts[0] += steps[0] + pair.first;
	return XDP_PASS;
}

// Programs only read this map, but the control half writes it: nothing is known of it.
SEC("xdp/set")
int set(struct xdp_md *ctx)
{
	__u32 first = 0, *index = bpf_map_lookup_elem(&settings, &first);

	if (index)
		counts[*index]++;
	return XDP_PASS;
}
