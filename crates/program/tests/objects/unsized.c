// Maps whose numbers of entries are said when the program is installed: counters by processor, and processors to go on.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_CPUMAP);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct bpf_cpumap_val));
} cpus SEC(".maps");

/* Used by no program: it stays without entries. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u32);
	__type(value, __u32);
} others SEC(".maps");

SEC("xdp")
int spread(struct xdp_md *ctx)
{
	__u32 key = ctx->ingress_ifindex;
	__u64 *count = bpf_map_lookup_elem(&counts, &key);

	if (!count)
		return XDP_ABORTED;
	*count += 1;
	return bpf_redirect_map(&cpus, key & 1, XDP_DROP);
}
