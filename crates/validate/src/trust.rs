//! Trust in a row's run: a row is void, and never "ok", if its run was not faithful, or lost packets outside
//! links.

use longwire_bench::world::own_losses;
use longwire_engine::Report;
use longwire_report::Row;
use serde_json::Value;

/// The row, void for this reason.
pub(crate) fn void(mut row: Row, why: impl Into<String>) -> Row {
    let why = why.into();
    let reasons = row.extra.entry("void").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = reasons {
        list.push(why.clone().into());
    }
    row.note(format!("void: {why}"))
}

/// The reasons why the row is void; empty if it is not.
pub(crate) fn reasons(row: &Row) -> Vec<String> {
    let list = row.extra.get("void").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The row, void for another row's reasons: that row's measurement is part of its value.
pub(crate) fn like(row: Row, reasons: &[String]) -> Row {
    reasons.iter().fold(row, void)
}

/// A void row that was judged has failed.
pub(crate) fn sealed(row: Row) -> Row {
    if row.pass.is_some() && !reasons(&row).is_empty() { row.judged(false) } else { row }
}

/// The row, void if the engine was not faithful in this run, or itself lost packets, or lost count of them.
pub(crate) fn trusted(row: Row, report: &Report) -> Row {
    let unfaithful = report.fidelity.iter().filter(|fidelity| !fidelity.faithful);
    let row = unfaithful.fold(row, |row, fidelity| {
        let causes = fidelity.causes.join("; ");
        void(row, format!("the run was not faithful: {causes}"))
    });
    whole(row, report)
}

/// The row of a run with intended overload, which makes packets late: void if the engine itself lost packets,
/// or lost count of them.
pub(crate) fn whole(row: Row, report: &Report) -> Row {
    let row = report.errors.iter().fold(row, void);
    let row = own_losses(report).into_iter().fold(row, void);
    if report.is_conserved() { row } else { void(row, "packets are missing from the engine's books") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_engine::{OwnLosses, RemovedPorts};

    #[test]
    fn losses_of_every_kind_make_a_row_void() {
        let report = |losses| Report {
            removed_ports: RemovedPorts { losses, ..RemovedPorts::default() },
            ..Report::default()
        };
        let reasons_of = |losses| reasons(&whole(Row::new("x", "ns"), &report(losses)));
        assert!(reasons_of(OwnLosses::default()).is_empty());
        let down = OwnLosses { down: 3, ..OwnLosses::default() };
        assert!(reasons_of(down)[0].contains("3 by ports that were down"));
        assert_eq!(reasons_of(OwnLosses { oversize: 1, ..OwnLosses::default() }).len(), 1);
    }

    #[test]
    fn a_void_row_is_never_ok() {
        let row = || Row::new("x", "ns").expected(4).measured(4);
        assert_eq!(sealed(row().within(1.0)).pass, Some(true));
        assert_eq!(sealed(void(row(), "late").within(1.0)).pass, Some(false));
        assert_eq!(sealed(void(row().within(1.0), "late")).pass, Some(false), "whichever comes first");
        assert_eq!(sealed(void(row(), "late")).pass, None, "what nobody judges is shown, and says so");
        let other = like(row(), &reasons(&void(void(row(), "late"), "lost")));
        assert_eq!((reasons(&other), other.notes.len()), (vec!["late".to_owned(), "lost".to_owned()], 2));
    }
}
