//! A million links in a few lines.

use longwire_scenario::plan_of;

#[test]
fn a_million_links_share_what_they_are_made_of() {
    let text = r#"
        [[port]]
        name = "west"
        driver = "memory"
        addresses = "10.0.0.0/8"

        [[port]]
        name = "east"
        driver = "memory"

        [[link]]
        name = "line{n}"
        count = 1_000_000
        from = "west"
        to = "east"
        rate = "1 Mbit/s"
        delay = "{n % 4} ms"
        match = [{ source = "{10.0.0.0 + n}", destination = "198.51.100.1" }]
    "#;
    let plan = plan_of(text);
    assert_eq!((plan.links.len(), plan.address_rules.len(), plan.profiles.len()), (1_000_000, 1_000_000, 4));
    assert_eq!(&*plan.links[999_999].name, "line1000000");
    let last = &plan.address_rules[999_999];
    assert_eq!(last.source.to_string(), "10.15.66.64");
    assert_eq!(plan.routes.links(&last.route), [999_999]);
    // One link is its own route: no table beside the rules.
    assert_eq!(plan.routes.listed(), 0);
}
