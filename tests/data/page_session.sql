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
INSERT INTO "sessions" VALUES('traj-c8fd25e41b9a3864','0b6b75f4b537e74a1f25b9579f2972366dc095987863e491e0b449d70457bdac',NULL,NULL,NULL,'page','0.0.1','bdaf0111d33ab46b0b8dfcf8ccdd6acac55307ce3d6235e79a8f30e764ca1f72','{"id":"order","env":"page","template":"order","args":{},"context":{},"seed":null,"description":"Order something","metadata":{},"validation":null,"prompt":null,"gym":null,"setup":[],"evaluate":[],"config":null,"target":null,"source":null}','{"viewport_width":1280,"viewport_height":800,"device_scale_factor":1.0,"locale":"en-US","timezone":"UTC","color_scheme":"light","reduced_motion":"reduce","font_scale":1.0,"latency_ms":0.0,"offline":false}',3278375719,'Order ''tea'' in the form, then answer with the number of the order.','on_submit','d06802b15a1a458db59bd13cab8c854a71710aa3ddbaf0a49ac18117d1449d83',1,'durable',0,'2fe56209b9b2883ca35f1cc8f1289128',NULL,NULL,'2026-11-26 23:04:56.032484',1,NULL,NULL,NULL,NULL,NULL,'2026-11-26 23:04:51.494011',NULL,NULL,NULL,NULL,25415);
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
INSERT INTO "steps" VALUES('traj-c8fd25e41b9a3864',0,'{"index":0,"kind":"step","look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Page: Orders\nURL: http://site.localhost/\n\n- generic [active] [ref=e1]:\n  - heading \"Orders\" [level=1] [ref=e2]\n  - generic [ref=e3]:\n    - text: What\n    - textbox \"What\" [ref=e4]\n  - button \"Send\" [ref=e5]\n  - status [ref=e6]: Nothing ordered yet.","screenshot":{"sha256":"bc66c8e150c971fc41b4fe8d2eed073aa7c0527ba63caa2acb09d47423827068","extension":"jpg","width_px":1280,"height_px":800,"scale":1.0},"started_at":"2026-11-26T23:04:55.184322Z","ended_at":"2026-11-26T23:04:55.474026Z"}',0.289704);
INSERT INTO "steps" VALUES('traj-c8fd25e41b9a3864',1,'{"index":1,"kind":"step","actions":[{"ref":"e4","type":"type","text":"tea","enter_after":false}],"performed":1,"places":[{"x":144.5,"y":91.375}],"look":{"image":"jpeg"},"delivered_image":true,"observation_text":"Page: Orders\nURL: http://site.localhost/\n\n- generic [ref=e1]:\n  - heading \"Orders\" [level=1] [ref=e2]\n  - generic [ref=e3]:\n    - text: What\n    - textbox \"What\" [active] [ref=e4]: tea\n  - button \"Send\" [ref=e5]\n  - status [ref=e6]: Nothing ordered yet.","screenshot":{"sha256":"af46350f5cc76b22137311958ba2d63148c0e2b07ad3df0eeba6ec381675caff","extension":"jpg","width_px":1280,"height_px":800,"scale":1.0},"started_at":"2026-11-26T23:04:55.526129Z","ended_at":"2026-11-26T23:04:55.903904Z"}',0.377775);
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
CREATE INDEX sessions_principal ON sessions (principal, started_at, stored_bytes);
CREATE INDEX sessions_living ON sessions (principal, started_at) WHERE ended_at IS NULL;
CREATE INDEX sessions_started ON sessions (started_at, id);
CREATE INDEX sessions_going_on ON sessions (owner) WHERE ended_at IS NULL;
CREATE INDEX sessions_job ON sessions (job_id, started_at, id);
CREATE INDEX sessions_start ON sessions (start_key, attempt);
CREATE INDEX sessions_ended ON sessions (ended_at, id) WHERE ended_at IS NOT NULL;
CREATE INDEX sessions_token ON sessions (token_digest, started_at) WHERE token_digest IS NOT NULL;
CREATE INDEX connection_sessions_session ON connection_sessions (session_id);
CREATE INDEX logs_session ON logs (session_id);
COMMIT;
