// Loops as compilers leave them that were told not to unroll.
#include "parse.h"

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 16);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

// The header checksum of an IPv4 packet, word by word, put into its source address.
SEC("xdp")
int checksum(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	__u16 *words = (__u16 *)(data + 14);
	__u32 sum = 0;
	int i;

	if (data + 34 > end)
		return XDP_DROP;
#pragma nounroll
	for (i = 0; i < 10; i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	words[6] = sum + (sum >> 16);
	return XDP_PASS;
}

// Tags of VLANs, one behind the other.
SEC("xdp")
int tags(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx), *at = data + 12;
	int i;

#pragma nounroll
	for (i = 0; i < 6; i++) {
		if (at + 4 > end)
			return XDP_DROP;
		if (at[0] != 0x81)
			break;
		at += 4;
	}
	return i + 2;
}

// Items that say how long they are, as options of TCP do.
SEC("xdp")
int items(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	__u32 at = 0, found = 0, i;

#pragma nounroll
	for (i = 0; i < 20; i++) {
		__u8 *item = data + (at & 0xff);

		if (item + 2 > end)
			break;
		if (item[0] == 2)
			found++;
		at += (item[1] & 15) + 1;
	}
	return found + 1;
}

static __attribute__((noinline)) __u32 ones(__u32 byte)
{
	__u32 sum = 0, i;

#pragma nounroll
	for (i = 0; i < 8; i++) {
		sum += byte & 1;
		byte >>= 1;
		asm volatile("" : "+r"(sum), "+r"(byte));
	}
	return sum;
}

// A loop in a loop, one of them in a function.
SEC("xdp")
int bits(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	__u32 key, i;
	__u64 *count;

	if (data + 12 > end)
		return XDP_DROP;
#pragma nounroll
	for (i = 0; i < 12; i++) {
		key = ones(data[i]);
		count = bpf_map_lookup_elem(&counts, &key);
		if (count)
			*count += i;
	}
	return XDP_PASS;
}

// Sorts the first bytes of the packet.
SEC("xdp")
int sort(struct xdp_md *ctx)
{
	__u8 *data = DATA(ctx), *end = END(ctx);
	int i, j;

	if (data + 12 > end)
		return XDP_DROP;
#pragma nounroll
	for (i = 0; i < 11; i++) {
#pragma nounroll
		for (j = 0; j < 11; j++) {
			__u8 first = data[j], second = data[j + 1];

			if (first > second) {
				data[j] = second;
				data[j + 1] = first;
			}
		}
	}
	return XDP_TX;
}

char _license[] SEC("license") = "GPL";
