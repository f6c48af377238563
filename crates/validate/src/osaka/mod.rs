pub(crate) fn all(_: &mut crate::book::Book<'_>) {}
