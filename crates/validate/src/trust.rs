//! Whether a row's run can be trusted: a row whose run was not faithful, or lost packets elsewhere than in
//! links, is void, and never "ok" whatever it measured.

use longwire_engine::Report;
use longwire_report::Row;
use serde_json::Value;

/// The row with a reason for which its run can't be trusted.
pub(crate) fn void(mut row: Row, why: impl Into<String>) -> Row {
    let why = why.into();
    let reasons = row.extra.entry("void").or_insert_with(|| Value::Array(Vec::new()));
    if let Value::Array(list) = reasons {
        list.push(why.clone().into());
    }
    row.note(format!("void: {why}"))
}

/// Why the row is void, if it is.
pub(crate) fn reasons(row: &Row) -> Vec<String> {
    let list = row.extra.get("void").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The row with all that another one's run can't be trusted for: what it measured is part of this row's
/// value.
pub(crate) fn like(row: Row, reasons: &[String]) -> Row {
    reasons.iter().fold(row, void)
}

/// A void row that was judged has failed.
pub(crate) fn sealed(row: Row) -> Row {
    if row.pass.is_some() && !reasons(&row).is_empty() { row.judged(false) } else { row }
}

/// The row, void if the engine was not faithful in this run, lost packets by its own fault, or has lost
/// count of them.
pub(crate) fn trusted(row: Row, report: &Report) -> Row {
    let unfaithful = report.fidelity.iter().filter(|fidelity| !fidelity.faithful);
    let row = unfaithful.fold(row, |row, fidelity| {
        let causes = fidelity.causes.join("; ");
        void(row, format!("the run was not faithful: {causes}"))
    });
    whole(row, report)
}

/// The row of a run with intended overload, whose packets are late because of it: void if packets were lost
/// by the engine's own fault, or count of them was lost.
pub(crate) fn whole(row: Row, report: &Report) -> Row {
    let row = report.errors.iter().fold(row, void);
    let own = report.own_losses();
    let row = if own.pool + own.port + own.ring == 0 {
        row
    } else {
        let (pool, port, ring) = (own.pool, own.port, own.ring);
        void(
            row,
            format!("lost by the engine's own fault: {pool} by the pool, {port} by ports, {ring} by rings"),
        )
    };
    if report.is_conserved() { row } else { void(row, "packets are missing from the engine's books") }
}

#[cfg(test)]
mod tests {
    use super::*;

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
