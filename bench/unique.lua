-- Requests each path in the file $PATHS with a new query, so that no cache has stored it.
local paths, n = {}, 0
for line in io.lines(os.getenv("PATHS")) do paths[#paths + 1] = line end
local run = tostring(os.time()) .. tostring({}):gsub("%W", "")
request = function()
  n = n + 1
  return wrk.format("GET", paths[n % #paths + 1] .. "?" .. run .. n)
end
