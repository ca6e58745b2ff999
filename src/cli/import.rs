//! `handback import`: loads ledger rows from a CSV file, all or none. Every bad row is named by its
//! line, so that a file is mended in one go; a key that exists already is a bad row, because an
//! import never changes figures that are in use.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use csv::StringRecord;

use super::outcome::{Failure, Outcome};
use super::start;
use crate::config::Config;
use crate::core::instant::parse_moment;
use crate::core::ledger::{check_new, open_all};
use crate::core::words::{FundsKind, ResourceType};
use crate::store::ledger::NewLedger;

/// More bad rows than this are counted, not listed.
const LISTED: usize = 1000;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// What the rows are
    what: What,
    /// With a head: key,available (stock, quota); key,kind,available,expires_at (funds);
    /// key,owner,issuer,expires_at (coupons); key (slots)
    file: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    Stock,
    Coupons,
    Funds,
    Quota,
    Slots,
}

impl What {
    fn resource(self) -> ResourceType {
        match self {
            Self::Stock => ResourceType::Stock,
            Self::Coupons => ResourceType::Coupon,
            Self::Funds => ResourceType::Funds,
            Self::Quota => ResourceType::Quota,
            Self::Slots => ResourceType::Slot,
        }
    }

    fn columns(self) -> &'static [&'static str] {
        match self {
            Self::Stock | Self::Quota => &["key", "available"],
            Self::Funds => &["key", "kind", "available", "expires_at"],
            Self::Coupons => &["key", "owner", "issuer", "expires_at"],
            Self::Slots => &["key"],
        }
    }
}

pub(super) async fn run(args: &Args, config: &Config) -> Result<Outcome, Failure> {
    let text = read(&args.file)?;
    let (lines, rows) = match parse(args.what, &text) {
        Ok(rows) => rows.into_iter().unzip::<u64, NewLedger, Vec<_>, Vec<_>>(),
        Err(complaints) => return Ok(refuse(&args.file, &complaints)),
    };
    let core = start::core(config, 2).await?;
    let (count, keys): (usize, Vec<String>) = (rows.len(), rows.iter().map(|row| row.key.clone()).collect());
    let taken = open_all(&core, &super::actor(), rows).await;
    core.db.close().await;
    let complaint = |at: usize| Complaint { line: lines[at], what: format!("key {:?} exists already", keys[at]) };
    let complaints: Vec<Complaint> = taken?.into_iter().map(complaint).collect();
    if !complaints.is_empty() {
        return Ok(refuse(&args.file, &complaints));
    }
    println!("imported {count} rows");
    Ok(Outcome::Done)
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| Failure::Usage(format!("{} can't be read: {error}", path.display())))
}

/// A bad row.
#[derive(Debug, PartialEq, Eq)]
struct Complaint {
    line: u64,
    what: String,
}

fn refuse(path: &Path, complaints: &[Complaint]) -> Outcome {
    let rows = if complaints.len() == 1 { "1 bad row".to_owned() } else { format!("{} bad rows", complaints.len()) };
    eprintln!("handback: {}: {rows}, nothing was imported", path.display());
    for Complaint { line, what } in complaints.iter().take(LISTED) {
        eprintln!("  line {line}: {what}");
    }
    if complaints.len() > LISTED {
        eprintln!("  and {} more", complaints.len() - LISTED);
    }
    Outcome::No
}

/// Every row with its line, or everything that is wrong.
fn parse(what: What, text: &[u8]) -> Result<Vec<(u64, NewLedger)>, Vec<Complaint>> {
    // Spreadsheets begin UTF-8 with a mark of their own.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let columns = read_head(what, &mut reader).map_err(|what| vec![Complaint { line: 1, what }])?;
    let mut rows = Vec::new();
    let mut complaints = Vec::new();
    let mut first_lines = HashMap::new();
    for record in reader.records() {
        let (line, read) = match record {
            Ok(record) => (record.position().map_or(0, csv::Position::line), read_row(what, &columns, &record)),
            Err(error) => (error.position().map_or(0, csv::Position::line), Err(vec![why(&error)])),
        };
        match read {
            Ok(row) => match first_lines.insert(row.key.clone(), line) {
                Some(first) => {
                    complaints.push(Complaint { line, what: format!("key {:?} stands in line {first} too", row.key) })
                }
                None => rows.push((line, row)),
            },
            Err(wrong) => complaints.extend(wrong.into_iter().map(|what| Complaint { line, what })),
        }
    }
    if complaints.is_empty() { Ok(rows) } else { Err(complaints) }
}

fn why(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "is not UTF-8".to_owned(),
        _ => error.to_string(),
    }
}

/// The columns as the file orders them: exactly the ones that belong to this kind of row.
fn read_head(what: What, reader: &mut csv::Reader<&[u8]>) -> Result<Vec<String>, String> {
    let head = reader.headers().map_err(|error| why(&error))?;
    let columns: Vec<String> = head.iter().map(|name| name.trim().to_owned()).collect();
    let wanted = what.columns();
    let fits = columns.len() == wanted.len() && wanted.iter().all(|name| columns.iter().any(|known| known == name));
    if fits { Ok(columns) } else { Err(format!("the head must be {}, is {}", wanted.join(","), columns.join(","))) }
}

fn read_row(what: What, columns: &[String], record: &StringRecord) -> Result<NewLedger, Vec<String>> {
    if record.len() != columns.len() {
        return Err(vec![format!("must have {} fields, has {}", columns.len(), record.len())]);
    }
    let field = |name: &str| {
        let at = columns.iter().position(|known| known == name);
        at.and_then(|at| record.get(at)).filter(|field| !field.is_empty())
    };
    let mut wrong = Vec::new();
    let mut row = NewLedger {
        resource: what.resource(),
        key: field("key").unwrap_or_default().to_owned(),
        available: 1,
        kind: None,
        owner: field("owner").map(str::to_owned),
        issuer: field("issuer").map(str::to_owned),
        expires_at: None,
    };
    if what.columns().contains(&"available") {
        match field("available").unwrap_or_default().trim().parse() {
            Ok(available) => row.available = available,
            Err(_) => wrong.push("available must be a whole number".to_owned()),
        }
    }
    if let Some(kind) = field("kind") {
        row.kind = FundsKind::from_word(kind.trim());
        if row.kind.is_none() {
            wrong.push("kind must be balance or points".to_owned());
        }
    }
    if let Some(end) = field("expires_at") {
        row.expires_at = parse_moment(end.trim());
        if row.expires_at.is_none() {
            wrong.push("expires_at must be a time like 2026-11-30T06:15:00Z".to_owned());
        }
    }
    if wrong.is_empty() {
        wrong.extend(check_new(&row).into_iter().map(|error| format!("{} {}", error.field, error.message)));
    }
    if wrong.is_empty() { Ok(row) } else { Err(wrong) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints(what: What, text: &str) -> Vec<String> {
        let wrong = parse(what, text.as_bytes()).expect_err("wrong");
        wrong.into_iter().map(|complaint| format!("{}: {}", complaint.line, complaint.what)).collect()
    }

    #[test]
    fn columns_may_stand_in_any_order_and_keys_are_kept_byte_by_byte() {
        let rows = parse(What::Stock, "\u{feff}available,key\r\n5,\" a,b \"\r\n0,券\r\n".as_bytes()).expect("fine");
        let keys: Vec<(&str, i64)> = rows.iter().map(|(_, row)| (row.key.as_str(), row.available)).collect();
        assert_eq!(keys, [(" a,b ", 5), ("券", 0)]);
        let coupons = "key,owner,issuer,expires_at\nC1,,platform,2030-01-01T00:00:00Z\n";
        let rows = parse(What::Coupons, coupons.as_bytes()).expect("fine");
        assert_eq!((rows[0].1.owner.as_ref(), rows[0].1.available), (None, 1));
    }

    #[test]
    fn every_bad_row_is_named_by_its_line() {
        let text = "key,available\na,1\nb,-1\n,2\nc\nd,x\n\"e\nf\",3\na,4\ng,99999999999999999999\n";
        assert_eq!(
            complaints(What::Stock, text),
            [
                "3: available must be from 0 to 1000000000000000, is -1",
                "4: key must have 1 to 128 characters, has 0",
                "5: must have 2 fields, has 1",
                "6: available must be a whole number",
                "7: key must not contain control characters, contains U+000A",
                "9: key \"a\" stands in line 2 too",
                "10: available must be a whole number",
            ]
        );
    }

    #[test]
    fn what_belongs_to_a_type_is_asked_for() {
        let funds =
            "key,kind,available,expires_at\na,,1,\nb,gold,1,\nc,balance,1,soon\nd,balance,1,2030-01-01T00:00:00Z\n";
        let wrong = complaints(What::Funds, funds);
        assert_eq!(wrong.len(), 4, "{wrong:?}");
        assert!(wrong[0].contains("kind is required") && wrong[3].contains("only points run out"), "{wrong:?}");
        let wrong = complaints(What::Coupons, "key,owner,issuer,expires_at\na,u,somebody,\n");
        assert!(wrong[0].starts_with("2: issuer") && wrong[1].starts_with("2: expires_at"), "{wrong:?}");
    }

    #[test]
    fn a_wrong_head_says_what_it_must_be() {
        for head in ["", "sku,qty", "key;available", "key,available,price", "key,key"] {
            let wrong = complaints(What::Quota, &format!("{head}\na,1\n"));
            assert!(wrong[0].starts_with("1: the head must be key,available"), "{wrong:?}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_a_bad_row() {
        let wrong = parse(What::Slots, b"key\nok\n\xff\xfe\n").expect_err("wrong");
        assert_eq!(wrong, [Complaint { line: 3, what: "is not UTF-8".to_owned() }]);
    }
}
