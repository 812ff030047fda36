-- The stream of events and its three views; all queries read these.
CREATE TABLE events (
  kind INT,
  person ROW<id BIGINT, name STRING, email STRING, credit_card STRING, city STRING, state STRING, extra STRING>,
  auction ROW<id BIGINT, item STRING, description STRING, initial_bid BIGINT, reserve BIGINT,
    expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING>,
  bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, extra STRING>,
  date_time TIMESTAMP(3),
  WATERMARK FOR date_time AS date_time - INTERVAL '2' SECOND
) WITH (
  'connector' = 'tidewise-nexmark',
  'trace' = '${trace}',
  'proportions' = '${proportions}',
  'splits' = '${splits}',
  'pending' = '${pending}',
  'count-in' = '${count-in}',
  'poll-wait' = '${poll-wait}'
);
CREATE VIEW persons AS
SELECT person.id AS id, person.name AS name, person.city AS city, person.state AS state, date_time FROM events WHERE kind = 0;
CREATE VIEW auctions AS
SELECT auction.id AS id, auction.item AS item, auction.seller AS seller, auction.category AS category,
  auction.reserve AS reserve, auction.expires AS expires, date_time FROM events WHERE kind = 1;
CREATE VIEW bids AS
SELECT bid.auction AS auction, bid.bidder AS bidder, bid.price AS price, bid.channel AS channel, date_time
FROM events WHERE kind = 2;
