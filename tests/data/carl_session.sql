BEGIN TRANSACTION;
CREATE TABLE connection_sessions (
	connection_id VARCHAR(64) NOT NULL, 
	session_id VARCHAR(64) NOT NULL, 
	PRIMARY KEY (connection_id, session_id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE connections (
	id VARCHAR(64) NOT NULL, 
	caller VARCHAR(64) NOT NULL, 
	introduction JSON NOT NULL, 
	touched_at DATETIME NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE job_runs (
	job_id VARCHAR(64) NOT NULL, 
	run VARCHAR(64) NOT NULL, 
	PRIMARY KEY (job_id, run), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
CREATE TABLE job_tasks (
	job_id VARCHAR(64) NOT NULL, 
	position INTEGER NOT NULL, 
	"row" JSON NOT NULL, 
	PRIMARY KEY (job_id, position), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
CREATE TABLE jobs (
	id VARCHAR(64) NOT NULL, 
	created_at DATETIME NOT NULL, 
	"row" JSON NOT NULL, 
	planned BOOLEAN, 
	pruned JSON, 
	PRIMARY KEY (id)
);
CREATE TABLE logs (
	id INTEGER NOT NULL, 
	session_id VARCHAR(64) NOT NULL, 
	line INTEGER, 
	at DATETIME NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (id), 
	CONSTRAINT logs_line UNIQUE (session_id, line), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "logs" VALUES(1,'traj-2668bc216ece5648',0,'2026-11-26 22:21:18.490512','its server was stopped, and the session waits in its record');
CREATE TABLE servers (
	id VARCHAR(64) NOT NULL, 
	machine VARCHAR(64) NOT NULL, 
	started_at DATETIME NOT NULL, 
	beat_at DATETIME NOT NULL, 
	beat_s FLOAT NOT NULL, 
	advertised VARCHAR(512), 
	tag VARCHAR(64), 
	is_draining BOOLEAN, 
	PRIMARY KEY (id)
);
CREATE TABLE sessions (
	id VARCHAR(64) NOT NULL, 
	secret_digest VARCHAR(64) NOT NULL, 
	job_id VARCHAR(64), 
	principal VARCHAR(512), 
	token_digest VARCHAR(64), 
	environment VARCHAR(64) NOT NULL, 
	environment_version VARCHAR(64) NOT NULL, 
	environment_digest VARCHAR(64), 
	task JSON NOT NULL, 
	context JSON NOT NULL, 
	seed BIGINT, 
	prompt TEXT, 
	reward_policy VARCHAR(16), 
	start_key VARCHAR(64), 
	attempt INTEGER, 
	record VARCHAR(16), 
	unflushed BOOLEAN, 
	live_token VARCHAR(64), 
	owner VARCHAR(64), 
	answered_at DATETIME, 
	released_at DATETIME, 
	was_stopped BOOLEAN, 
	overloaded INTEGER, 
	lost_gradings INTEGER, 
	failed_in_grading BOOLEAN, 
	died_in_grading BOOLEAN, 
	receipt JSON, 
	started_at DATETIME NOT NULL, 
	ended_at DATETIME, 
	pruned JSON, 
	pruned_steps INTEGER, 
	erased BOOLEAN, 
	stored_bytes BIGINT, 
	PRIMARY KEY (id), 
	CONSTRAINT sessions_secret UNIQUE (secret_digest), 
	CONSTRAINT sessions_live UNIQUE (live_token), 
	FOREIGN KEY(job_id) REFERENCES jobs (id)
);
INSERT INTO "sessions" VALUES('traj-2668bc216ece5648','5c6694625cdaf1548ca8cec1828cb77ed9da3ea95bb990583c3d0ff977d7eb18',NULL,NULL,NULL,'CARLCartPole','1.4.0','a255003f063ab76625ab1ca9c117b25b2d55d982d855b1c803e92d1633c33da7','{"id":"balance","env":"CARLCartPole","template":"balance","args":{},"context":{"gravity":1.62,"length":1.5},"seed":5,"description":"Keep the pole upright for a number of steps","metadata":{},"validation":null,"prompt":null,"gym":null,"setup":[],"evaluate":[],"config":null,"target":null,"source":null}','{"gravity":1.62,"masscart":1.0,"masspole":0.1,"length":1.5,"force_mag":10.0,"tau":0.02,"initial_state_lower":-0.1,"initial_state_upper":0.1}',5,'Keep the pole upright, and the cart on its track, for 200 steps. Your reward is the share of these 200 steps after which it still stood. Step with the action {"type": "custom", "action": "step", "args": {"action": 0}}, or "actions" with a list; an action is a whole number: 0 push left; 1 push right. There is one episode. When you are done, submit any answer.','per_step','7fca18a32ef38e7d3c315116187104fd4cf1bef195b854f71e91b308506d69bb',1,'durable',0,'e94c643db3ee3495159aa615e233ca04',NULL,NULL,'2026-11-26 22:21:18.598636',1,NULL,NULL,NULL,NULL,NULL,'2026-11-26 22:21:16.774507',NULL,NULL,NULL,NULL,16393);
CREATE TABLE snapshots (
	session_id VARCHAR(64) NOT NULL, 
	step INTEGER NOT NULL, 
	data BLOB NOT NULL, 
	PRIMARY KEY (session_id), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE steps (
	session_id VARCHAR(64) NOT NULL, 
	step INTEGER NOT NULL, 
	"row" JSON NOT NULL, 
	took_s FLOAT, 
	PRIMARY KEY (session_id, step), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
INSERT INTO "steps" VALUES('traj-2668bc216ece5648',0,'{"index":0,"kind":"step","actions":[{"type":"custom","action":"step","args":{"actions":[1,0,1]}}],"performed":1,"look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Step 3 of at most 500.\ncart position: -0.08671 m\ncart velocity, positive to the right: 0.1719 m/s\npole angle, positive to the right: -0.02573 rad\npole angular velocity: -0.1896 rad/s\nContext: gravity 1.62, masscart 1, masspole 0.1, length 1.5, force_mag 10, tau 0.02, initial_state_lower -0.1, initial_state_upper 0.1.","screenshot":{"sha256":"2ae043023efb51f97dd019e24617398bfcf2768f3b14df0190c53381f59ce15c","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"reward":3.0,"info":{"first_step":1,"rewards":[1.0,1.0,1.0],"info":{"context_id":0}},"started_at":"2026-11-26T22:21:18.281895Z","ended_at":"2026-11-26T22:21:18.411861Z"}',0.129966);
INSERT INTO "steps" VALUES('traj-2668bc216ece5648',1,'{"index":1,"kind":"step","actions":[{"type":"custom","action":"step","args":{"actions":[1,0,1]}}],"performed":1,"look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Step 6 of at most 500.\ncart position: -0.07249 m\ncart velocity, positive to the right: 0.3672 m/s\npole angle, positive to the right: -0.03909 rad\npole angular velocity: -0.2886 rad/s\nContext: gravity 1.62, masscart 1, masspole 0.1, length 1.5, force_mag 10, tau 0.02, initial_state_lower -0.1, initial_state_upper 0.1.","screenshot":{"sha256":"b0260b1f847e288011338372a32cf4193daf97d3bcd98a76bcf471e2cd7c7d20","extension":"jpg","width_px":600,"height_px":400,"scale":1.0},"reward":3.0,"info":{"first_step":4,"rewards":[1.0,1.0,1.0],"info":{"context_id":0}},"started_at":"2026-11-26T22:21:18.425900Z","ended_at":"2026-11-26T22:21:18.462968Z"}',0.037068);
CREATE TABLE turns (
	session_id VARCHAR(64) NOT NULL, 
	turn INTEGER NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	before_step INTEGER NOT NULL, 
	bytes BIGINT NOT NULL, 
	input_tokens BIGINT, 
	output_tokens BIGINT, 
	cached_tokens BIGINT, 
	cost_usd FLOAT, 
	model_s FLOAT NOT NULL, 
	"row" JSON NOT NULL, 
	PRIMARY KEY (session_id, turn), 
	CONSTRAINT turns_digest UNIQUE (session_id, digest), 
	FOREIGN KEY(session_id) REFERENCES sessions (id)
);
CREATE TABLE versions (
	version INTEGER NOT NULL, 
	PRIMARY KEY (version)
);
INSERT INTO "versions" VALUES(9);
CREATE INDEX connections_touched ON connections (touched_at);
CREATE INDEX jobs_created ON jobs (created_at);
CREATE INDEX sessions_living ON sessions (principal, started_at) WHERE ended_at IS NULL;
CREATE INDEX sessions_started ON sessions (started_at, id);
CREATE INDEX sessions_going_on ON sessions (owner) WHERE ended_at IS NULL;
CREATE INDEX sessions_job ON sessions (job_id, started_at, id);
CREATE INDEX sessions_start ON sessions (start_key, attempt);
CREATE INDEX sessions_token ON sessions (token_digest, started_at) WHERE token_digest IS NOT NULL;
CREATE INDEX sessions_ended ON sessions (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_principal ON sessions (principal, started_at, stored_bytes);
CREATE INDEX connection_sessions_session ON connection_sessions (session_id);
CREATE INDEX logs_session ON logs (session_id);
COMMIT;
