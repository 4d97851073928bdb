//! Reads: each is one statement, and so sees one snapshot.

use afl_store::Epoch;
use afl_store::backend::{BucketCursor, Head, Scan, ScanOrder};
use afl_store::record::{Key, Record, Tenant};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row};

use super::failure::PostgresFailure;
use super::rows::{COLUMNS, Keys, record};
use super::server::Connections;

pub(super) async fn get(
    connections: &Connections,
    keys: &[Key],
) -> Result<Vec<Option<Record>>, PostgresFailure> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let epoch = connections.epochs.now();
    let rows = connections.query(&by_key(), &keys.iter().collect::<Keys<'_>>().params()).await?;
    found(&rows, keys.len(), epoch).map_err(|error| PostgresFailure::of(&connections.server, &error))
}

/// The statement for the records of some keys; [`found`] reads its answer.
pub(super) fn by_key() -> String {
    format!(
        "SELECT k.n, {COLUMNS} FROM unnest($1::text[], $2::text[], $3::text[]) \
         WITH ORDINALITY AS k(tenant, scope, id, n) \
         JOIN afl.records r ON r.tenant = k.tenant AND r.scope = k.scope AND r.id = k.id"
    )
}

pub(super) fn found(rows: &[Row], keys: usize, epoch: Epoch) -> Result<Vec<Option<Record>>, Error> {
    let mut found = vec![None; keys];
    for row in rows {
        let nth: i64 = row.try_get(0)?;
        let nth = usize::try_from(nth).expect("rows are counted from one");
        found[nth - 1] = Some(record(row, 1, epoch)?);
    }
    Ok(found)
}

pub(super) async fn scan(connections: &Connections, scan: &Scan) -> Result<Vec<Record>, PostgresFailure> {
    let mut query = ScanQuery::default();
    let limit = match scan {
        Scan::Scope { tenant, scope, prefix, after, limit } => {
            query.scope(tenant, scope, prefix, after.as_deref());
            limit
        }
        Scan::Bucket { tenant, bucket, ranks, order, after, limit } => {
            query.bucket(tenant, bucket, ranks.highest(), *order, after.as_ref());
            limit
        }
    };
    let order = query.order;
    let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
    let nth = query.add(limit);
    let filter = query.filters.join(" AND ");
    let sql = format!("SELECT {COLUMNS} FROM afl.records r WHERE {filter} ORDER BY {order} LIMIT ${nth}");
    let epoch = connections.epochs.now();
    let rows = connections.query(&sql, &query.params()).await?;
    let read = |row| record(row, 0, epoch);
    rows.iter()
        .map(read)
        .collect::<Result<_, _>>()
        .map_err(|error| PostgresFailure::of(&connections.server, &error))
}

/// Goes from bucket to bucket by the index, so that one of many records costs no more than one of few.
pub(super) async fn heads(
    connections: &Connections,
    tenant: &Tenant,
    prefix: &str,
) -> Result<Vec<Head>, PostgresFailure> {
    let end = end_of_prefix(prefix);
    let before_end = if end.is_some() { "AND bucket < $3" } else { "" };
    let sql = format!(
        "WITH RECURSIVE heads AS (
             (SELECT bucket, rank FROM afl.records WHERE tenant = $1 AND bucket >= $2 {before_end}
              ORDER BY bucket, rank LIMIT 1)
             UNION ALL
             SELECT next.bucket, next.rank FROM heads, LATERAL (
                 SELECT bucket, rank FROM afl.records WHERE tenant = $1 AND bucket > heads.bucket {before_end}
                 ORDER BY bucket, rank LIMIT 1
             ) AS next
         )
         SELECT bucket, rank FROM heads"
    );
    let tenant = tenant.as_str();
    let mut params: Vec<&(dyn ToSql + Sync)> = vec![&tenant, &prefix];
    params.extend(end.as_ref().map(|end| end as &(dyn ToSql + Sync)));
    let rows = connections.query(&sql, &params).await?;
    Ok(rows.iter().map(|row| Head { bucket: row.get(0), rank: row.get(1) }).collect())
}

/// From scope to scope by the index.
pub(super) async fn scopes(
    connections: &Connections,
    tenant: &Tenant,
    after: &str,
    limit: usize,
) -> Result<Vec<String>, PostgresFailure> {
    const SQL: &str = "WITH RECURSIVE scopes AS (
             (SELECT scope FROM afl.records WHERE tenant = $1 AND scope > $2 ORDER BY tenant, scope LIMIT 1)
             UNION ALL
             SELECT next.scope FROM scopes, LATERAL (
                 SELECT scope FROM afl.records WHERE tenant = $1 AND scope > scopes.scope
                 ORDER BY tenant, scope LIMIT 1
             ) AS next
         )
         SELECT scope FROM scopes LIMIT $3";
    let (tenant, limit) = (tenant.as_str(), i64::try_from(limit).unwrap_or(i64::MAX));
    let rows = connections.query(SQL, &[&tenant, &after, &limit]).await?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
}

/// The conditions of a scan and their values. Only conditions that hold are written, so that each plan is an index range.
#[derive(Default)]
struct ScanQuery {
    filters: Vec<String>,
    values: Vec<Box<dyn ToSql + Sync + Send>>,
    order: &'static str,
}

impl ScanQuery {
    fn scope(&mut self, tenant: &Tenant, scope: &str, prefix: &str, after: Option<&str>) {
        self.order = "r.tenant, r.scope, r.id";
        self.filter("r.tenant =", tenant.as_str().to_owned());
        self.filter("r.scope =", scope.to_owned());
        match after {
            Some(after) if after >= prefix => self.filter("r.id >", after.to_owned()),
            Some(_) | None => self.filter("r.id >=", prefix.to_owned()),
        }
        if let Some(end) = end_of_prefix(prefix) {
            self.filter("r.id <", end);
        }
    }

    fn bucket(
        &mut self,
        tenant: &Tenant,
        bucket: &str,
        highest: i64,
        order: ScanOrder,
        after: Option<&BucketCursor>,
    ) {
        let (sorted, beyond) = match order {
            ScanOrder::Ascending => ("r.tenant, r.bucket, r.rank, r.scope, r.id", ">"),
            ScanOrder::Descending => {
                ("r.tenant DESC, r.bucket DESC, r.rank DESC, r.scope DESC, r.id DESC", "<")
            }
        };
        self.order = sorted;
        self.filter("r.tenant =", tenant.as_str().to_owned());
        self.filter("r.bucket =", bucket.to_owned());
        self.filter("r.rank <=", highest);
        if let Some(BucketCursor { rank, scope, id }) = after {
            let (rank, scope, id) = (self.add(*rank), self.add(scope.to_string()), self.add(id.clone()));
            self.filters.push(format!("(r.rank, r.scope, r.id) {beyond} (${rank}, ${scope}, ${id})"));
        }
    }

    fn filter(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static) {
        let nth = self.add(value);
        self.filters.push(format!("{condition} ${nth}"));
    }

    /// Returns the number of its parameter.
    fn add(&mut self, value: impl ToSql + Sync + Send + 'static) -> usize {
        self.values.push(Box::new(value));
        self.values.len()
    }

    fn params(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect()
    }
}

/// The least text above all that begin with `prefix`; none when there is no such text.
///
/// The order of characters is the order of their UTF-8, so counting the last character up is enough.
fn end_of_prefix(prefix: &str) -> Option<String> {
    let mut end = prefix.to_owned();
    while let Some(last) = end.pop() {
        if let Some(next) = next_char(last) {
            end.push(next);
            return Some(end);
        }
    }
    None
}

fn next_char(character: char) -> Option<char> {
    (character..=char::MAX).nth(1)
}

#[cfg(test)]
mod tests {
    use super::end_of_prefix;

    #[test]
    fn the_end_is_above_all_that_begin_with_the_prefix() {
        for prefix in ["a", "run/", "a\u{10ffff}", "é", "\u{d7ff}", "\u{7f}"] {
            let end = end_of_prefix(prefix).expect("there is a greater character");
            assert!(end.as_str() > prefix, "{prefix:?} {end:?}");
            assert!(end > format!("{prefix}\u{10ffff}\u{10ffff}z"), "{prefix:?} {end:?}");
            assert!(!end.starts_with(prefix), "{prefix:?} {end:?}");
        }
        assert_eq!(end_of_prefix("ab"), Some("ac".to_owned()));
        assert_eq!(end_of_prefix(""), None);
        assert_eq!(end_of_prefix("\u{10ffff}"), None);
    }
}
