//! Settings that are read and checked but that nothing acts on yet. Saying so loudly matters: a
//! rule that someone believes to be on is worse than none.

use super::Config;
use super::sections::SecondPerson;
use super::shop::Trigger;

impl Config {
    /// One sentence per setting that was made and has no effect in this version.
    pub fn not_in_effect(&self) -> Vec<String> {
        let mut names = Vec::new();
        let sections = [
            ("two_person.force_close", self.two_person.force_close != SecondPerson::Never),
            ("two_person.adjust", self.two_person.adjust != SecondPerson::Never),
            ("triggers.enable: wheel", self.triggers.enable.contains(&Trigger::Wheel)),
            ("triggers.enable: redis", self.triggers.enable.contains(&Trigger::Redis)),
            ("triggers.enable: broker", self.triggers.enable.contains(&Trigger::Broker)),
        ];
        names.extend(sections.iter().filter(|(_, made)| *made).map(|(name, _)| (*name).to_owned()));
        names.into_iter().map(|name| format!("{name} has no effect in this version")).collect()
    }
}
