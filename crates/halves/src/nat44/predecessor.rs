//! Programs left at the router by a killed predecessor: they are adopted rather than installed again, so that
//! no packet leaves untranslated meanwhile.

use super::NAME;
use crate::session::{RouterSession, fid_of};
use anyhow::{Context, bail};
use longwire_units::Nanos;
use serde_json::Value;

/// Programs of a predecessor, which can be adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Predecessor {
    /// The one that translates.
    pub program: u32,
    /// The one behind it, whose packets go up.
    pub attachment: u32,
}

impl Predecessor {
    /// Finds them; none if no program has the name.
    ///
    /// # Errors
    /// A program has the name with another state or another lease: adopting it would not do what was
    /// requested.
    pub fn find(session: &RouterSession, state: &[u8], lease: Nanos) -> anyhow::Result<Option<Self>> {
        let list = session.list()?;
        let named: Vec<&Value> = list.iter().filter(|one| one["name"] == NAME).collect();
        let Some(attachment) = named.iter().position(|one| one["where"] == "control") else {
            return Ok(None);
        };
        let is_same = |one: &Value| one["lease_ns"] == lease.0;
        for before in named[..attachment].iter().filter(|one| is_same(named[attachment]) && is_same(one)) {
            let program = number(before)?;
            if session.data::<STATE>(program).is_ok_and(|data| data == state) {
                return Ok(Some(Self { program, attachment: number(named[attachment])? }));
            }
        }
        bail!("{}", refusal(session.router(), &named));
    }
}

/// Bytes of the program's state.
const STATE: usize = 48;

fn number(program: &Value) -> anyhow::Result<u32> {
    fid_of(program).context("a program has a number")
}

/// The existing programs, and how to remove them.
fn refusal(router: &str, named: &[&Value]) -> String {
    let which = named.iter().map(|one| {
        let lease = one["lease_left_ns"].as_u64().map_or_else(
            || "without a lease".to_owned(),
            |left| format!("with {} s of its lease left unless it is renewed", left.div_ceil(1_000_000_000)),
        );
        format!("program {}, {lease}", one["fid"])
    });
    let which: Vec<String> = which.collect();
    let remove = named.iter().rev().map(|one| format!("longwire forwarder remove {router} {}", one["fid"]));
    let remove: Vec<String> = remove.collect();
    format!(
        "{router} has a {NAME} already, with other options than these: {}; end it, wait until what it has \
         left is gone, or remove that: {}",
        which.join("; "),
        remove.join("; ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn refusals_name_what_there_is_and_what_removes_it() {
        let program = json!({ "fid": 3, "lease_left_ns": 41_200_000_000_u64 });
        let said = refusal("r1", &[&program, &json!({ "fid": 4 })]);
        assert!(
            said.contains(
                "program 3, with 42 s of its lease left unless it is renewed; program 4, without a lease;"
            ),
            "{said}"
        );
        assert!(
            said.ends_with("remove that: longwire forwarder remove r1 4; longwire forwarder remove r1 3"),
            "{said}"
        );
    }
}
