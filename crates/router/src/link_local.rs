//! Link-local addresses.

/// 169.254.0.0/16, which no router forwards (RFC 3927, 7).
#[inline]
pub(crate) const fn is_link_local_v4(address: u32) -> bool {
    address >> 16 == 0xa9fe
}

#[inline]
pub(crate) const fn is_link_local(address: u128) -> bool {
    address >> 118 == 0x3fa
}
